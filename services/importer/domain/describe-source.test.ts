import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { filename, mimeType } from '../../../shared/contracts/fields.ts';
import { describeSource, safeName } from './describe-source.ts';

const url = new URL('https://a.test/files/the%20file.pdf?name=other#part');
const nameOf = (disposition: string) => describeSource(url, { 'content-disposition': disposition }).filename;

describe('the name', () => {
  test.each([
    ['attachment; filename="a b.txt"', 'a b.txt'], ['attachment; filename=a.txt', 'a.txt'], ['inline; FILENAME = a.txt; x=y', 'a.txt'], ['attachment; filename="a\\"b;c.txt"', 'a"b;c.txt'],
    ['attachment; filename="x"; filename*=UTF-8\'en\'%e2%82%ac.txt', '€.txt'], ['attachment; filename*=utf-8\'\'%ff; filename=x', 'x'], ['attachment; filename*=iso-8859-1\'\'%a3; filename=x', 'x'],
    [Buffer.from('attachment; filename="ü.txt"').toString('latin1'), 'ü.txt'], ['attachment; filename="\u00fc.txt"', 'ü.txt'], ['attachment; filename=""', 'the file.pdf'], ['attachment', 'the file.pdf'], ['', 'the file.pdf'],
    ['attachment; filename="/etc/passwd"', '_etc_passwd'], ['attachment; filename="..\\\\..\\\\up"', '.._.._up'], ['attachment; filename=".."', 'download'], ['attachment; filename="  "', 'download'], ['attachment; filename*=UTF-8\'\'a%0d%0aX:%20y%00', 'a__X: y_'],
    ['attachment; filename*=UTF-8\'\'%E2%80%AEgnp.exe', '_gnp.exe'],
  ])('%s is %s', (disposition, name) => {
    expect(nameOf(disposition)).toBe(name);
  });

  test('any text becomes one that can be stored, the same when it is made safe again', () => {
    fc.assert(fc.property(fc.oneof(fc.string({ unit: 'binary', maxLength: 400 }), fc.array(fc.constantFrom('é', 'e\u0301', '👩‍👩‍👧', '/', '\0', '.', ' ', '\ud800', '漢', '\u0344'), { maxLength: 200 }).map((all) => all.join(''))), (text) => {
      const name = safeName(text);
      expect(filename.safeParse(name)).toEqual({ success: true, data: name });
      expect(safeName(name)).toBe(name);
    }), { numRuns: 2_000 });
  });

  test('a long one is cut between two characters', () => {
    expect(safeName('漢'.repeat(100))).toBe('漢'.repeat(85));
    expect(Buffer.byteLength(safeName('a'.repeat(254) + 'é'))).toBe(254);
    expect(safeName(`${'a'.repeat(254)} b`)).toBe('a'.repeat(254));
  });
});

describe('the type', () => {
  test.each([
    ['text/html; charset=utf-8', 'text/html; charset=utf-8'], [' text/plain ', 'text/plain'], ['text/html;;', 'text/html'], ['text/html; =x', 'text/html'], ['text', 'application/octet-stream'], ['', 'application/octet-stream'], ['text/html\u00e4', 'application/octet-stream'],
    [`text/${'x'.repeat(300)}`, 'application/octet-stream'], ['text/html, text/plain', 'application/octet-stream'],
  ])('%j is %s', (header, type) => {
    expect(describeSource(url, { 'content-type': header }).mimeType).toBe(type);
  });

  test('any header gives one that can be stored', () => {
    fc.assert(fc.property(fc.string(), (header) => mimeType.safeParse(describeSource(url, { 'content-type': header }).mimeType).success));
  });
});
