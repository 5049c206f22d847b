/** How long a pipe waits, and pipes over more than one gateway (interface chapter: Pipes). Its exchange has little patience. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startOwnStack, type OwnStack } from '../support/own-stack.ts';
import { follow, makePipe, readFrom, sendTo, type Pipe } from '../support/pipes.ts';
import { sha256Of } from '../support/planned.ts';
import { expectRefusal } from '../support/refusals.ts';
import { startSecondGateway, type SecondGateway } from '../support/second-gateway.ts';

const gatewayEnv = { RATE_LIMITS: 'off', PIPE_WAIT_SECONDS: '2', PIPE_IDLE_SECONDS: '4' };

let own: OwnStack;
let second: SecondGateway;
let exchange: OwnStack['exchange'];
let session: string;
beforeAll(async () => {
  own = await startOwnStack({ gateway: gatewayEnv, storage: { SWEEP_SECONDS: '1', APPEND_LEASE_SECONDS: '3' }, policy: { SWEEP_SECONDS: '1' } });
  second = await startSecondGateway(own.stack, gatewayEnv);
  ({ exchange } = own);
  session = await exchange.signIn();
}, 60_000);
afterAll(async () => {
  await second.stop();
  await own.remove();
});

const gone = async (pipe: Pipe) => expectRefusal(await exchange.call(pipe.downloadUrl), 404, 'share_not_found_or_expired');
const endOf = async (pipe: Pipe) => (await exchange.events(session, { targetId: pipe.pipeId, eventType: 'upload.aborted' }))[0];

describe('patience', () => {
  test('a reader whose first byte does not come is answered deadline_exceeded, and its use comes back', async () => {
    const pipe = await makePipe(exchange, { maxUses: 1 });
    expectRefusal(await exchange.call(pipe.downloadUrl), 504, 'deadline_exceeded');
    const sender = sendTo(pipe);
    await sender.write('at last');
    const reader = await follow(pipe);
    await sender.end();
    expect(await reader.rest()).toEqual({ bytes: Buffer.from('at last'), isWhole: true });
  });

  test('a sender that stays silent is told, and its readers are cut off', async () => {
    const pipe = await makePipe(exchange, {}, { bearer: session });
    const sender = sendTo(pipe);
    await sender.write('and then nothing');
    const reader = await follow(pipe);
    expect(await sender.told).toMatchObject({ status: 504, json: { code: 'deadline_exceeded' } });
    expect(await reader.rest()).toEqual({ bytes: Buffer.from('and then nothing'), isWhole: false });
    expect(await endOf(pipe)).toMatchObject({ data: { reason: 'sender_idle' } });
    await gone(pipe);
  });

  test('a sender that lets a byte come now and then may take as long as it likes', { timeout: 30_000 }, async () => {
    const pipe = await makePipe(exchange);
    const sender = sendTo(pipe);
    await sender.write('.');
    const reader = await follow(pipe);
    for (let beat = 0; beat < 4; beat += 1) {
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      await sender.write('.');
    }
    await sender.end();
    expect(await reader.rest()).toEqual({ bytes: Buffer.from('.....'), isWhole: true });
  });

  test('a pipe that nobody writes expires like any transfer, and one that is written then fails', { timeout: 60_000 }, async () => {
    const [unwritten, written] = [await makePipe(exchange, { ttl: 30 }, { bearer: session }), await makePipe(exchange, { ttl: 30 }, { bearer: session })];
    const sender = sendTo(written);
    await sender.write('.');
    const reader = await follow(written);
    const drip = setInterval(() => void sender.write('.'), 1_000);
    expect((await reader.rest()).isWhole).toBe(false);
    clearInterval(drip);
    expect(await sender.told).toMatchObject({ status: 409, json: { code: 'upload_state_conflict' } });
    for (const pipe of [unwritten, written]) {
      await gone(pipe);
      expect(await exchange.events(session, { targetId: pipe.pipeId, eventType: 'transfer.expired' })).toMatchObject([{ targetType: 'pipe' }]);
    }
    expectRefusal(await exchange.call(unwritten.uploadUrl, { method: 'PUT', body: 'late', headers: { 'x-delete-token': unwritten.deleteToken } }), 410, 'upload_expired');
  });
});

describe('over two gateways', () => {
  test('the bytes that come to one are followed at both', async () => {
    const bytes = randomBytes(5 * 1_024 ** 2);
    for (const [from, to] of [[undefined, second.baseUrl], [second.baseUrl, undefined]]) {
      const pipe = await makePipe(exchange);
      const sender = sendTo(pipe, { ...(from && { at: from }) });
      await sender.write(bytes.subarray(0, 10));
      const [there, here] = await Promise.all([follow(pipe, { ...(to && { at: to }) }), follow(pipe, { ...(from && { at: from }) })]);
      for (const reader of [there, here]) expect((await reader.take(10)).equals(bytes.subarray(0, 10))).toBe(true);
      await sender.end(bytes.subarray(10));
      for (const reader of [there, here]) {
        const rest = await reader.rest();
        expect([rest.isWhole, sha256Of(rest.bytes)]).toEqual([true, sha256Of(bytes.subarray(10))]);
      }
    }
  });

  test('a sender that is lost at one ends the readers at both', async () => {
    const pipe = await makePipe(exchange);
    const sender = sendTo(pipe, { at: second.baseUrl });
    await sender.write('lost');
    const readers = await Promise.all([follow(pipe), follow(pipe, { at: second.baseUrl })]);
    sender.vanish();
    for (const reader of readers) expect((await reader.rest()).isWhole).toBe(false);
  });

  test('a gateway that is killed with its sender ends the readers at the other with an error', { timeout: 60_000 }, async () => {
    const third = await startSecondGateway(own.stack, gatewayEnv);
    const pipe = await makePipe(exchange, { maxUses: 5 }, { bearer: session });
    const sender = sendTo(pipe, { at: third.baseUrl });
    await sender.write('killed');
    const reader = await follow(pipe);
    const waiting = readFrom(pipe.downloadUrl);
    expect((await reader.take(6)).toString()).toBe('killed');
    await third.stop('SIGKILL');
    expect(await sender.told).toBeUndefined();
    expect((await reader.rest()).isWhole).toBe(false);
    expect((await (await waiting).rest()).isWhole).toBe(false);
    expect(await endOf(pipe)).toMatchObject({ actor: { type: 'service', id: 'storage' }, data: { reason: 'sender_lost' } });
    expect(await exchange.events(session, { shareId: pipe.shareId, eventType: 'share.ended' })).toHaveLength(1);
    await gone(pipe);
  });
});
