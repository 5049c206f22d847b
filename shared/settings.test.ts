/** Settings that are read from files. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { readSettings } from './settings.ts';

const shape = { PASSWORD: z.string().min(12, 'must have at least 12 characters'), PORT: z.string().optional() };
let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'aex-settings-'));
  file = join(folder, 'password');
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

function given(env: Record<string, string>): void {
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
}

describe('a setting', () => {
  test('may be in a file; the line’s end is not part of it', () => {
    writeFileSync(file, 'long enough to pass\n');
    given({ PASSWORD: '', PASSWORD_FILE: file, PORT_FILE: '' });
    expect(readSettings(shape)).toEqual({ PASSWORD: 'long enough to pass' });
  });

  test('in a file must be as good as one in the environment, and its value is not told', () => {
    writeFileSync(file, 'short');
    given({ PASSWORD_FILE: file });
    expect(() => readSettings(shape)).toThrow(/^Bad settings: PASSWORD must have at least 12 characters\.$/);
  });

  test('cannot be in both', () => {
    writeFileSync(file, 'long enough to pass');
    given({ PASSWORD: 'long enough to pass', PASSWORD_FILE: file });
    expect(() => readSettings(shape)).toThrow(/^Bad settings: PASSWORD and PASSWORD_FILE are both set\.$/);
  });

  test('in a file that is empty is absent, and one that cannot be read is named', () => {
    writeFileSync(file, '\n');
    given({ PASSWORD_FILE: file });
    expect(() => readSettings(shape)).toThrow(/^Bad settings: PASSWORD must be set\.$/);
    given({ PASSWORD_FILE: join(folder, 'absent') });
    expect(() => readSettings(shape)).toThrow(/^Bad settings: PASSWORD_FILE names a file that cannot be read\.$/);
  });
});
