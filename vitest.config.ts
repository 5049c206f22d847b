/** Three kinds of tests, one after the other: units, the interface over HTTP, and faults with stacks of their own. */
import { defineConfig } from 'vitest/config';

const common = { environment: 'node', pool: 'forks' } as const;

export default defineConfig({
  test: {
    reporters: ['default', './tests/support/count-reporter.ts'],
    globalSetup: ['./tests/support/global-setup.ts'],
    maxWorkers: 2,
    projects: [
      {
        test: {
          ...common, name: 'unit', sequence: { groupOrder: 0 },
          include: ['shared/**/*.test.ts', 'services/**/*.test.ts', 'web/**/*.test.ts', 'deploy/**/*.test.ts', 'tests/conventions/**/*.test.ts'],
          testTimeout: 20_000,
        },
      },
      {
        test: {
          ...common, name: 'spec', sequence: { groupOrder: 1 },
          include: ['tests/spec/**/*.test.ts', 'tests/browser/**/*.test.ts'],
          testTimeout: 60_000, hookTimeout: 60_000,
        },
      },
      {
        test: {
          ...common, name: 'faults', sequence: { groupOrder: 2 }, fileParallelism: false,
          include: ['tests/faults/**/*.test.ts'],
          testTimeout: 300_000, hookTimeout: 120_000,
        },
      },
    ],
  },
});
