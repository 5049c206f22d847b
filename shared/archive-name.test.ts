/** Names inside of archives, good and hostile. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { archiveName, nameKey } from './archive-name.ts';

describe('a name in an archive', () => {
  test.each([
    ['a.txt', 'a.txt'], ['a/b/c.txt', 'a/b/c.txt'], ['ü/日本.txt', 'ü/日本.txt'], ['u\u0308', 'ü'], ['=cmd|x', '=cmd_x'], ['.hidden/..x', '.hidden/..x'],
    ['../../etc/passwd', '__/__/etc/passwd'], ['/etc/passwd', 'etc/passwd'], ['a//b/./c', 'a/b/c'], ['..\\boot.ini', '.._boot.ini'], ['C:/x', 'C_/x'],
    ['CON', '_CON'], ['aux.tar.gz', '_aux.tar.gz'], ['a/LPT1 .txt', 'a/_LPT1 .txt'], ['CONSOLE.txt', 'CONSOLE.txt'], ['com¹', '_com¹'],
    ['a. ', 'a__'], ['dots...', 'dots___'], ['a\r\nb\0c', 'a__b_c'], ['gnp\u202etxt', 'gnp_txt'], ['\ud800', '\ufffd'], ['', '_'], ['/', '_'],
  ])('%j is %j', (path, name) => {
    expect(archiveName(path)).toBe(name);
  });

  test('never leaves its folder, and is left alone when it is made safe once more', () => {
    fc.assert(fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: fc.constantFrom('.', '/', '\\', ' ', 'C', ':', 'n', 'u', 'l', '\u202e') })), (path) => {
      const name = archiveName(path);
      expect(archiveName(name)).toBe(name);
      expect(name.split('/')).not.toContain('..');
      expect(name).not.toMatch(/^\/|\\|^$|[\0-\x1f:]|\/\/|[. ](\/|$)/);
    }));
  });

  test('has one key with every name that differs in case alone', () => {
    for (const [a, b] of [['README', 'readme'], ['Straße', 'STRASSE'], ['É', 'e\u0301'], ['ΣΑΣ', 'σας']] as const) expect(nameKey(archiveName(a))).toBe(nameKey(archiveName(b)));
    expect(nameKey('a')).not.toBe(nameKey('b'));
  });
});
