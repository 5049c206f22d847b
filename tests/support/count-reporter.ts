/** Ends a test run with one plain line that any CI can read: how many passed, how many failed. */
import type { Reporter, TestModule } from 'vitest/node';

export default class CountReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const states = modules.flatMap((module) => [...module.children.allTests()].map((test) => test.result().state));
    const count = (state: string) => states.filter((one) => one === state).length;
    const skipped = count('skipped');
    process.stdout.write(`\n${count('passed')} passed, ${count('failed')} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`);
  }
}
