import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { flowOf, flowTtl, isOfDomains, isStateOf, openFlow, sealFlow } from './oidc-flow.ts';

const secret = () => randomBytes(32).toString('base64url');
const keys = [randomBytes(32), randomBytes(32)];
const now = 1_800_000_000_000;

test('a sealed flow opens to the same values, under an older key as well', () => {
  const one = secret();
  expect(openFlow(sealFlow(one, now, keys), now, keys)).toEqual(flowOf(one));
  expect(openFlow(sealFlow(one, now, [keys[1]!]), now, keys)).toEqual(flowOf(one));
});

test('a flow ends after its time, and one that was changed or made by others is none', () => {
  const token = sealFlow(secret(), now, keys);
  expect(openFlow(token, now + flowTtl * 1_000 - 1, keys)).toBeDefined();
  expect(openFlow(token, now + flowTtl * 1_000, keys)).toBeUndefined();
  for (const forged of ['', 'flow_.', `${token}x`, token.replace('flow_', 'other_'), sealFlow(secret(), now, [randomBytes(32)])]) {
    expect(openFlow(forged, now, keys)).toBeUndefined();
  }
});

test('every value of a flow is another, and none is the secret', () => {
  const one = secret();
  const values = Object.values(flowOf(one));
  expect(new Set([one, ...values]).size).toBe(5);
  for (const value of values) expect(value).toMatch(/^[\w-]{43}$/);
});

test('only the flow’s own state is its state', () => {
  const flow = flowOf(secret());
  expect(isStateOf(flow, flow.state)).toBe(true);
  for (const state of [undefined, '', flow.nonce, flow.state.slice(1), `${flow.state}x`]) expect(isStateOf(flow, state)).toBe(false);
});

test.each([
  ['a@example.com', [], true],
  ['a@example.com', ['example.com'], true],
  ['a@EXAMPLE.com', ['other.example', 'example.com'], true],
  ['a@sub.example.com', ['example.com'], false],
  ['a@notexample.com', ['example.com'], false],
  ['"a@example.com"@evil.example', ['example.com'], false],
])('%s of %j: %s', (email, domains, allowed) => {
  expect(isOfDomains(email, domains)).toBe(allowed);
});
