/** Hostile file names: everything in them is seen, and nothing in them is done. */
import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { savedName, shellQuoted, showName } from './names.ts';

describe('showName', () => {
  test.each([
    ['a right-to-left override', 'invoice\u202efdp.exe', 'invoice‹U+202E›fdp.exe'],
    ['an isolate and its end', '\u2067x\u2069', '‹U+2067›x‹U+2069›'],
    ['a zero-width space', 'pay\u200bpal', 'pay‹U+200B›pal'],
    ['a byte order mark', '\ufeffa', '‹U+FEFF›a'],
    ['a soft hyphen', 'a\u00adb', 'a‹U+00AD›b'],
    ['a no-break space', 'a\u00a0b', 'a‹U+00A0›b'],
    ['a Hangul filler', 'a\u3164b', 'a‹U+3164›b'],
    ['a tag character', 'a\u{e0041}', 'a‹U+E0041›'],
    ['a line break', 'a\nb\u2028c', 'a‹U+000A›b‹U+2028›c'],
    ['a lone surrogate', 'a\ud800', 'a‹U+D800›'],
    ['a joiner outside of an emoji', 'a\u200db', 'a‹U+200D›b'],
  ])('writes out %s', (_what, name, shown) => {
    expect(showName(name)).toBe(shown);
  });

  test('leaves names of every script, spaces and emoji as they are', () => {
    for (const name of ['report 2.pdf', 'Übersicht é.txt', 'تقرير.txt', '報告.pdf', 'हिन्दी.md', '👩‍👩‍👧 ❤️.png']) expect(showName(name)).toBe(name);
  });

  test('stacks at most four marks on a letter', () => {
    expect(showName(`e${'\u0301'.repeat(6)}`)).toBe(`e${'\u0301'.repeat(4)}‹U+0301›‹U+0301›`);
  });
});

describe('savedName', () => {
  test.each([
    ['-rf', '_rf'], ['=cmd()|x', '_cmd()|x'], ['.bashrc', '_bashrc'], ['~root', '_root'], ['@file', '_file'], ['--', '_-'],
    ['a\u202eb', 'a_b'], ['../../etc/passwd', '_._.._etc_passwd'], ['  a  ', 'a'], ['a. .', 'a'], ['...', '_'], ['\u200b', '_'], ['   ', 'download'],
  ])('%j is saved as %j', (name, saved) => {
    expect(savedName(name)).toBe(saved);
  });
});

describe('shellQuoted', () => {
  test('a shell reads back exactly what was quoted', () => {
    const words = ["it's", '$(touch x)', '`id`', '"', '\\', "'\\''", '!!', '*', '-n', '; rm -rf /', '$HOME', 'a b', "''", 'ü\u202e'];
    for (const word of words) expect(execFileSync('sh', ['-c', `printf %s ${shellQuoted(word)}`], { encoding: 'utf8' })).toBe(word);
  });
});
