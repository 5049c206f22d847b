/** The headers that every answer has, whatever it is. */
import { expect } from 'vitest';

export function expectSafeHeaders(headers: Headers): void {
  expect(headers.get('x-content-type-options')).toBe('nosniff');
  expect(headers.get('x-frame-options')).toBe('DENY');
  expect(headers.get('referrer-policy')).toBe('no-referrer');
  expect(headers.get('content-security-policy')).toContain("default-src 'none'");
  expect(headers.get('x-request-id')).toMatch(/^[A-Za-z0-9._-]{8,64}$/);
  expect(headers.get('x-powered-by')).toBeNull();
  expect(headers.get('server')).toBeNull();
}
