/** What every refusal looks like: problem+json with the status and code of the error table. */
import { expect } from 'vitest';
import type { Answer } from './exchange.ts';

/** Checks a refusal as a whole; `fields` are the paths that `errors` must name, in any order. */
export function expectRefusal(answer: Answer, status: number, code: string, ...fields: string[]): void {
  expect({ status: answer.status, code: answer.json?.code, text: answer.text }).toMatchObject({ status, code });
  expect(answer.headers.get('content-type')).toBe('application/problem+json; charset=utf-8');
  expect(answer.headers.get('cache-control')).toBe('no-store');
  expect(answer.json).toMatchObject({
    type: expect.stringMatching(new RegExp(`^https?://[^/]+/problems/${code}$`)),
    title: expect.stringMatching(/./),
    status,
    detail: expect.stringMatching(/./),
    instance: expect.stringMatching(/^\/[^?]*$/),
    requestId: answer.headers.get('x-request-id'),
    retryable: expect.any(Boolean),
  });
  if (status === 401) expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer /);
  if (fields.length > 0) expect(answer.json.errors.map(({ path }: { path: string }) => path).sort()).toEqual([...fields].sort());
}
