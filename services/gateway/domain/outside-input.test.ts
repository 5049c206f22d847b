import { describe, expect, test } from 'vitest';
import { isSameOrigin, readAuthorization, readCookie, sessionCookie, sessionCookieName } from './credential.ts';
import { parseJson } from './json-body.ts';
import { contentDigest, disposition, safeType } from './transfer-headers.ts';

describe('credentials', () => {
  test('a secret does not leave in clear', () => {
    expect(JSON.stringify(readAuthorization('Bearer agk_k1.very-secret'))).not.toContain('very-secret');
    expect(readAuthorization('bearer  agk_k1.s').kind).toBe('agent_key');
  });

  test.each(['Basic abc', 'Bearer', 'Bearer agk_', 'Bearer agk_k1', 'Bearer AGK_k1.s', 'Bearer agk_k1.s extra', 'Bearer agk_k1.s,agk_k2.s', `Bearer agk_k1.${'x'.repeat(200)}`, ''])(
    '%.30s has no known form', (header) => expect(readAuthorization(header).kind).toBe('unknown'));

  test('the session cookie is bound to the host over https', () => {
    expect(sessionCookieName('https://x.example')).toBe('__Host-aex_session');
    expect(sessionCookie('https://x.example', 't', 9)).toBe('__Host-aex_session=t; Path=/; Max-Age=9; HttpOnly; SameSite=Lax; Secure');
    expect(sessionCookie('http://localhost', 't', 9)).not.toContain('Secure');
    expect(readCookie('a=1; aex_session=x=y; b=2', 'aex_session')).toBe('x=y');
  });

  test.each([
    [{ fetchSite: 'same-origin', origin: 'http://h' }, true],
    [{ fetchSite: 'cross-site' }, false],
    [{ fetchSite: 'same-site' }, false],
    [{ origin: 'http://h' }, true],
    [{ origin: 'http://h.evil' }, false],
    [{ origin: 'null' }, false],
    [{}, false],
  ])('%j is from our own pages: %s', (from, expected) => expect(isSameOrigin(from, 'http://h')).toBe(expected));
});

describe('JSON', () => {
  const bytes = (text: string) => Buffer.from(text);

  test.each([
    ['__proto__', bytes('{"__proto__":{"x":1}}')],
    ['an escaped __proto__', bytes('{"\\u005f_proto__":1}')],
    ['a byte order mark', bytes('\ufeff{}')],
    ['invalid UTF-8', Buffer.from([0x7b, 0xff, 0x7d])],
    ['no JSON', bytes('{')],
  ])('%s is refused', (_case, body) => expect(() => parseJson(body)).toThrow(expect.objectContaining({ code: 'invalid_request' })));

  test('depth 100,000 neither crashes nor hangs', () => {
    const deep = bytes('['.repeat(100_000) + ']'.repeat(100_000));
    expect(() => { try { parseJson(deep); } catch (error) { if ((error as { code?: string }).code !== 'invalid_request') throw error; } }).not.toThrow();
  });
});

describe('exact numbers', () => {
  const again = (text: string) => JSON.stringify(parseJson(Buffer.from(text), { exactNumbers: true }));

  test.each(['9007199254740993', '1e400', '-1e400', '1e-400', '-0', '-0.0', '123456789012345678.5', '0.1234567890123456789', '4.9406564584124654e-324', '1.23456789012e-310', `${'9'.repeat(100)}`])(
    '%s stays what it is, wherever it stands', (number) => {
      expect(again(number)).toBe(number);
      expect(again(`{"a":[${number},{"b":${number}}]}`)).toBe(`{"a":[${number},{"b":${number}}]}`);
    });

  test.each([['1e2', 100], ['1.50', 1.5], ['0.0e9', 0], ['100000000000000000000', 1e20], ['1.0000000000000000', 1], ['1E+2', 100], ['12345678901234567000', 12345678901234567000], ['0.1', 0.1]])(
    '%s is the number %d', (text, number) => expect(parseJson(Buffer.from(`[${text}, 9007199254740993]`), { exactNumbers: true })).toEqual([number, expect.anything()]));

  test('text with digits is text', () => expect(again('{"9007199254740993":"1e400 and -0"}')).toBe('{"9007199254740993":"1e400 and -0"}'));
  test('without asking, numbers are JavaScript numbers', () => expect(parseJson(Buffer.from('[1e400]'))).toEqual([Infinity]));
});

describe('transfer headers', () => {
  test.each(['text/html', 'application/xhtml+xml', 'image/svg+xml', 'text/xml', 'application/javascript', 'multipart/x-mixed-replace', 'application/pdf'])(
    '%s is served as plain bytes', (type) => expect(safeType(type)).toBe('application/octet-stream'));
  test.each(['text/plain', 'image/png', 'application/json', 'video/mp4'])('%s keeps its type', (type) => expect(safeType(type)).toBe(type));

  test.each(['a"b.txt', 'a\\b', 'ü.txt', '%0d%0a.txt', '\u202egpj.exe', "it's (1)*.txt", '😀.txt', 'a;b=c'])('no name breaks out of its header: %s', (name) => {
    const header = disposition(name);
    expect(header).toMatch(/^attachment; filename="[\x20-\x7e]*"; filename\*=UTF-8''[A-Za-z0-9%!#$&+^_`|~.-]+$/);
    expect(header.match(/"/g)).toHaveLength(2);
    expect(decodeURIComponent(header.split("UTF-8''")[1]!)).toBe(name);
  });

  test('Content-Digest is read among others', () => {
    const digest = Buffer.alloc(32, 1);
    expect(contentDigest(`sha-512=:AAAA:, sha-256=:${digest.toString('base64')}:`)).toBe(digest.toString('hex'));
    expect(contentDigest('md5=:AAAA:')).toBeUndefined();
  });
});
