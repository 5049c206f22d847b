import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isAllowedPort, readRedirect, readSourceUrl } from './source-url.ts';

const codeOf = (work: () => unknown) => {
  try {
    work();
    return 'good';
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
};

describe('the URL of a request', () => {
  test.each([
    ['http://example.com', 'example.com', false, 80], ['HTTPS://Example.COM:8443/a?b#c', 'example.com', false, 8443], ['https://example.com:443/', 'example.com', false, 443],
    ['http://0x7f.1/', '127.0.0.1', true, 80], ['http://[::1]:8080/', '::1', true, 8080], ['https://bücher.example/', 'xn--bcher-kva.example', false, 443], ['http://example.com/@user:pass', 'example.com', false, 80],
  ])('%s is read', (text, host, isAddress, port) => {
    expect(readSourceUrl(text)).toMatchObject({ host, isAddress, port });
  });

  test('whatever is sent, the answer is a host to check or invalid_request, and never a user name', () => {
    const piece = fc.constantFrom('http:', 'https:', '//', '/', '\\', '@', ':', '#', '?', '%00', '%40', '127.0.0.1', 'a.test', '[::1]', ' ', '\t', '\0', 'user', '８０', '0x7f.1', '\u202e', '\ud800');
    fc.assert(fc.property(fc.oneof(fc.array(piece, { maxLength: 9 }).map((pieces) => pieces.join('')), fc.webUrl(), fc.string()), (text) => {
      const code = codeOf(() => readSourceUrl(text));
      expect(['good', 'invalid_request']).toContain(code);
      if (code !== 'good') return;
      const { url, host } = readSourceUrl(text);
      expect([url.username, url.password, host === '']).toEqual(['', '', false]);
      // Who reads the text by its letters finds the same host, as far as it is written out.
      const authority = /^https?:\/\/([^/?#]+)/i.exec(text)![1]!;
      expect(authority).not.toContain('@');
    }), { numRuns: 3_000 });
  });
});

describe('where a redirect leads', () => {
  const from = new URL('https://a.test/b/c');
  test.each([['/d', 'https://a.test/d'], ['d?e', 'https://a.test/b/d?e'], ['//x.test/y', 'https://x.test/y'], ['http://x.test', 'http://x.test/'], ['http://\u00e2\u0091\u00a0.test/', 'http://1.test/'], ['', 'https://a.test/b/c']])('%s leads to %s', (location, url) => {
    expect(readRedirect(from, location).url.href).toBe(url);
  });

  test.each([['file:///etc/passwd', 'import_url_blocked'], ['http://u@x.test/', 'import_url_blocked'], ['https://:p@x.test/', 'import_url_blocked'], [undefined, 'import_upstream_failed'], ['http://', 'import_upstream_failed'], ['http://x.test:99999', 'import_upstream_failed']])('%s answers %s', (location, code) => {
    expect(codeOf(() => readRedirect(from, location))).toBe(code);
  });
});

test('ports below 1024 are the web’s own or blocked, and what a deployment denies is blocked', () => {
  fc.assert(fc.property(fc.integer({ min: -1, max: 1_023 }), (port) => isAllowedPort(port, []) === (port === 80 || port === 443)));
  for (const port of [8_080, 8_443, 3_000, 50_000, 65_535]) expect(isAllowedPort(port, [])).toBe(true);
  for (const port of [4_222, 5_432, 6_379, 65_536, 100_000, NaN]) expect(isAllowedPort(port, [])).toBe(false);
  expect([isAllowedPort(443, [443]), isAllowedPort(8_080, [8_080])]).toEqual([false, false]);
});
