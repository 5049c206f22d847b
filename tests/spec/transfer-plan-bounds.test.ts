/** The bounds of a creation request, as the plan checks them (interface chapter: Limits). */
import { describe, expect, test } from 'vitest';
import { sharedExchange } from '../support/exchange.ts';
import { MiB } from '../support/multipart-lane.ts';
import { expectRefusal } from '../support/refusals.ts';

const { call, must, plan, upload } = sharedExchange();

const ask = (fields: object) => call('/api/transfer-plan', { json: { filename: 'a.txt', size: 1, ...fields } });
const send = (body: string, headers: Record<string, string> = { 'content-type': 'application/json' }) => call('/api/transfer-plan', { body, headers });
const labels = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 'v']));
const agents = (count: number) => Array.from({ length: count }, (_, index) => `agent-${index}`);
const GiB = 1_024 * MiB;

describe('POST /api/transfer-plan, bounds', () => {
  test.each<[string, object]>([
    ['ttl 30', { ttl: 30 }],
    ['ttl 604800', { ttl: 604_800 }],
    ['maxUses 1', { maxUses: 1 }],
    ['100 agents', { allowedAgentIds: agents(100) }],
    ['an agent id of 128 characters', { allowedAgentIds: ['a'.repeat(128)] }],
    ['every character of an agent id', { allowedAgentIds: ['Az09._:-'] }],
    ['16 labels', { policyMetadata: labels(16) }],
    ['a label name of 64 characters', { policyMetadata: { ['n'.repeat(64)]: 'v' } }],
    ['a label value of 256 characters', { policyMetadata: { n: 'v'.repeat(256) } }],
    ['a size of 10 GiB', { size: 10 * GiB }],
    ['a part size of 5 MiB', { partSize: 5 * MiB }],
    ['a media type with a parameter', { mimeType: 'text/plain; charset=utf-8' }],
  ])('%s passes', async (_case, fields) => {
    expect((await ask(fields)).status).toBe(201);
  });

  test.each<[string, string, object]>([
    ['ttl', '29', { ttl: 29 }],
    ['ttl', '604801', { ttl: 604_801 }],
    ['ttl', '"abc"', { ttl: 'abc' }],
    ['ttl', '"60"', { ttl: '60' }],
    ['ttl', '1.5', { ttl: 1.5 }],
    ['ttl', '30.5', { ttl: 30.5 }],
    ['ttl', 'null', { ttl: null }],
    ['maxUses', '0', { maxUses: 0 }],
    ['maxUses', '-1', { maxUses: -1 }],
    ['maxUses', '1.5', { maxUses: 1.5 }],
    ['allowedAgentIds', '101', { allowedAgentIds: agents(101) }],
    ['allowedAgentIds', 'as text', { allowedAgentIds: 'a1,a2' }],
    ['allowedAgentIds.0', 'with a comma', { allowedAgentIds: ['a1,a2'] }],
    ['allowedAgentIds.1', 'with a space', { allowedAgentIds: ['a1', 'a 2'] }],
    ['allowedAgentIds.0', 'empty', { allowedAgentIds: [''] }],
    ['allowedAgentIds.0', 'of 129 characters', { allowedAgentIds: ['a'.repeat(129)] }],
    ['allowedAgentIds', 'on an open share', { authMode: 'open', allowedAgentIds: ['a1'] }],
    ['allowedAgentIds', 'absent on an agent share', { authMode: 'agent' }],
    ['allowedAgentIds', 'empty on an agent share', { authMode: 'agent', allowedAgentIds: [] }],
    ['authMode', 'unknown', { authMode: 'public' }],
    ['policyTemplateId', 'unknown', { policyTemplateId: 'private' }],
    ['policyMetadata', 'of 17 labels', { policyMetadata: labels(17) }],
    ['policyMetadata.n', 'of 257 characters', { policyMetadata: { n: 'v'.repeat(257) } }],
    ['policyMetadata.n', 'as a number', { policyMetadata: { n: 1 } }],
    ['policyMetadata.n', 'with U+0000', { policyMetadata: { n: 'a\0b' } }],
    ['policyMetadata.n', 'with a lone surrogate', { policyMetadata: { n: '\ud800' } }],
    ['policyMetadata', 'as a list', { policyMetadata: ['v'] }],
    ['size', '0', { size: 0 }],
    ['size', '-1', { size: -1 }],
    ['size', '1.5', { size: 1.5 }],
    ['size', '"5"', { size: '5' }],
    ['partSize', 'below 5 MiB', { partSize: 5 * MiB - 1 }],
    ['partSize', '0', { partSize: 0 }],
    ['lane', 'unknown', { lane: 'tus' }],
    ['sha256', 'in capitals', { sha256: 'A'.repeat(64) }],
    ['sha256', 'too short', { sha256: 'a'.repeat(63) }],
  ])('%s %s is refused by name', async (field, _case, fields) => {
    expectRefusal(await ask(fields), 400, 'invalid_request', field);
  });

  test('a label name of 65 characters is refused', async () => {
    const name = 'n'.repeat(65);
    expectRefusal(await ask({ policyMetadata: { [name]: 'v' } }), 400, 'invalid_request', `policyMetadata.${name}`);
  });

  test.each(['9007199254740993', '1e400', '-0', '1e3.5', 'NaN'])('a size of %s in the JSON is refused', async (number) => {
    expectRefusal(await send(`{"filename":"a","size":${number}}`), 400, 'invalid_request');
  });

  test('a size over 10 GiB is too large', async () => {
    expectRefusal(await ask({ size: 10 * GiB + 1 }), 413, 'payload_too_large', 'size');
  });

  test('an agent that is named twice counts once', async () => {
    expect((await plan({ filename: 'a', allowedAgentIds: ['b', 'a', 'b'] })).release).toMatchObject({ allowedAgentIds: ['b', 'a'] });
  });

  test('unknown fields are refused, each by name', async () => {
    expectRefusal(await ask({ max_uses: 1, colour: 'red' }), 400, 'invalid_request', 'max_uses', 'colour');
    expectRefusal(await send('{"filename":"a","__proto__":{"x":1}}'), 400, 'invalid_request', '__proto__');
    expectRefusal(await ask({ constructor: 1 }), 400, 'invalid_request', 'constructor');
    expectRefusal(await call('/api/transfer-plan?ttl=30', { json: { filename: 'a' } }), 400, 'invalid_request', 'ttl');
  });

  test('several bad fields are all named', async () => {
    expectRefusal(await ask({ ttl: 1, maxUses: 0, mimeType: 'x' }), 400, 'invalid_request', 'ttl', 'maxUses', 'mimeType');
  });

  test.each(['', '[]', 'null', '"a"', '7', '{', '{"filename":"a"}x'])('the body %j is refused', async (body) => {
    expectRefusal(await send(body), 400, 'invalid_request');
  });

  test('a body of another content type is refused', async () => {
    expectRefusal(await send('{"filename":"a"}', { 'content-type': 'text/plain' }), 415, 'unsupported_media_type');
  });

  test('a body over 1 MiB is refused', async () => {
    expectRefusal(await send(`{"filename":"${'a'.repeat(MiB)}"}`), 413, 'payload_too_large');
  });

  test('a plan at all its bounds still travels in a header', async () => {
    const allowedAgentIds = agents(100).map((id) => id.padEnd(128, 'x'));
    // Control characters take six bytes each in JSON: no label is longer.
    const policyMetadata = Object.fromEntries(Array.from({ length: 16 }, (_, index) => [String.fromCharCode(1 + index).repeat(64), '\u0001'.repeat(256)]));
    const stored = await upload('x', { filename: 'f'.repeat(255), allowedAgentIds, policyMetadata });
    expect(stored.id).toMatch(/^trf_/);
  });
});

describe('POST /api/transfer-plan, names', () => {
  const named = (filename: unknown) => ask({ filename });

  test.each([
    ['empty', ''], ['absent', undefined], ['no text', 7], ['.', '.'], ['..', '..'],
    ['with a slash', 'a/b'], ['absolute', '/etc/passwd'], ['climbing', '../a'], ['with a backslash', '..\\a'],
    ['with U+0000', 'a\0b'], ['with a line break', 'a\nb'], ['with CR LF', 'a\r\nX: y'], ['with a tab', 'a\tb'], ['with DEL', 'a\u007fb'],
    ['with a C1 control', 'a\u0085b'], ['with a lone surrogate', 'a\ud800'], ['of 256 bytes', 'a'.repeat(256)], ['of 256 bytes in NFC', 'e\u0301'.repeat(128)],
  ])('a name %s is refused', async (_case, filename) => {
    expectRefusal(await named(filename), 400, 'invalid_request', 'filename');
  });

  test.each([
    ['of 255 bytes', 'a'.repeat(255)], ['of 254 bytes in NFC and 381 before', 'e\u0301'.repeat(127)], ['quoted', '"a".txt'], ['percent-encoded', '%0d%0a.txt'],
    ['with a right-to-left override', '\u202egpj.exe'], ['of a device', 'CON'], ['of a drive', 'C:'], ['of a formula', '=1+1'], ['hidden', '.env'], ['of four bytes a character', '😀.txt'],
  ])('a name %s passes', async (_case, filename) => {
    expect((await named(filename)).status).toBe(201);
  });

  test('a name is kept in NFC', async () => {
    const { shareId } = await upload('x', { filename: 'cafe\u0301.txt' });
    expect((await must(`/api/share/${shareId}`)).json.filename).toBe('caf\u00e9.txt');
  });

  test.each(['', 'text', 'text/', '/plain', 'text/plain\r\nX: y', 'text/plain; charset', 'text plain', `text/${'x'.repeat(255)}`, 'a/b/c', 'tëxt/plain', 7, null])(
    'the media type %j is refused', async (mimeType) => {
      expectRefusal(await ask({ mimeType }), 400, 'invalid_request', 'mimeType');
    });

  test('without a media type, the bytes are plain bytes', async () => {
    const { shareId } = await upload('x', { mimeType: undefined });
    expect((await must(`/api/share/${shareId}`)).json.mimeType).toBe('application/octet-stream');
  });
});
