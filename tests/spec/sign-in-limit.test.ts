/** How sign-ins are limited by address and for how long, on a stack with short limits (interface chapter: Authentication). */
import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startOwnStack, type OwnStack } from '../support/own-stack.ts';
import { expectRefusal } from '../support/refusals.ts';

let own: OwnStack;
beforeAll(async () => {
  own = await startOwnStack({
    policy: { SIGN_IN_TRIES: '2', SIGN_IN_ADDRESS_TRIES: '4', SIGN_IN_WINDOW_SECONDS: '3' },
    gateway: { TRUSTED_PROXIES: '127.0.0.0/8,::1/128' },
  });
});
afterAll(() => own.remove());

const from = (address: string, email: string, password = 'wrong') =>
  own.exchange.call('/api/owner/session', { json: { email, password }, headers: { 'x-forwarded-for': address } });
const stranger = () => `${randomUUID()}@example.com`;

describe('the limit of sign-ins by address', () => {
  test('a few wrong ones at any accounts and the address answers rate_limited, for the right password as well, while others go on', async () => {
    const { owner } = own.exchange;
    for (let tries = 0; tries < 4; tries += 1) expectRefusal(await from('192.0.2.1', stranger()), 401, 'invalid_owner_credential');
    const refused = await from('192.0.2.1', owner.email, owner.password);
    expectRefusal(refused, 429, 'rate_limited');
    expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(3);
    expect((await from('192.0.2.2', owner.email, owner.password)).status).toBe(201);
  });

  test('an IPv6 network of 64 bits is one address', async () => {
    for (let tries = 0; tries < 4; tries += 1) expectRefusal(await from(`2001:db8::${tries}:1`, stranger()), 401, 'invalid_owner_credential');
    expectRefusal(await from('2001:db8::ffff', stranger()), 429, 'rate_limited');
    expectRefusal(await from('2001:db8:0:1::1', stranger()), 401, 'invalid_owner_credential');
  });

  test('an address that is locked locks no account', async () => {
    const { owner } = own.exchange;
    for (let tries = 0; tries < 4; tries += 1) await from('192.0.2.3', stranger());
    for (let tries = 0; tries < 5; tries += 1) expectRefusal(await from('192.0.2.3', owner.email), 429, 'rate_limited');
    expect((await from('192.0.2.4', owner.email, owner.password)).status).toBe(201);
  });
});

describe('the end of the window', () => {
  test('after the seconds of Retry-After an account may be tried again', async () => {
    const { owner } = own.exchange;
    for (let tries = 0; tries < 2; tries += 1) expectRefusal(await from('192.0.2.5', owner.email), 401, 'invalid_owner_credential');
    const refused = await from('192.0.2.6', owner.email, owner.password);
    expectRefusal(refused, 429, 'rate_limited');
    await setTimeout(Number(refused.headers.get('retry-after')) * 1_000);
    expect((await from('192.0.2.6', owner.email, owner.password)).status).toBe(201);
  });
});
