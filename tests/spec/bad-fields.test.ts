/** Values that fields cannot have, and strange ones that they can (interface chapter: Limits). */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { sharedExchange } from '../support/exchange.ts';
import { expectRefusal } from '../support/refusals.ts';

const { call, must, upload, plan } = sharedExchange();

const creating = ['/api/transfer-plan', '/api/upload/multipart/init'];
const good = { filename: 'a.txt', size: 1 };

/** Sends a value as it is written, since JSON.stringify would lose some of these. */
const send = (path: string, field: string, value: string) => {
  const { [field as 'size']: _replaced, ...rest } = good;
  return call(path, { method: 'POST', body: `${JSON.stringify(rest).slice(0, -1)},"${field}":${value}}`, headers: { 'content-type': 'application/json' } });
};

const noNumber = ['9007199254740993', '1e400', '-1e400', '1e21', '-1', '1.5', '"5"', 'true', 'null', '[5]', '{}', '""'];
const refusedNumbers: Readonly<Record<string, readonly string[]>> = {
  size: [...noNumber, '0', '-0', '0.0', '1e-400'],
  ttl: [...noNumber, '0', '-0', '29', '29.999999999999', '604801', '"abc"'],
  maxUses: [...noNumber, '0', '-0', '1000000001'],
  partSize: [...noNumber, '0', '-0', '5242879', '5368709121'],
};

describe.each(creating)('numbers of POST %s', (path) => {
  test.each(Object.entries(refusedNumbers).flatMap(([field, values]) => values.map((value) => [field, value] as const)))('%s %s answers invalid_request', async (field, value) => {
    const answer = await send(path, field, value);
    expectRefusal(answer, 400, 'invalid_request');
    expect(new Set(answer.json.errors.map((error: { path: string }) => error.path))).toEqual(new Set([field]));
  });

  test.each([['ttl', '30'], ['ttl', '604800'], ['ttl', '3e1'], ['ttl', '30.0'], ['maxUses', '1'], ['maxUses', '1000000000'], ['partSize', '5242880'], ['size', '10737418240']])('%s %s is good', async (field, value) => {
    expect((await send(path, field, value)).status).toBe(201);
  });

  test('a size over the limit of the deployment answers payload_too_large and names it', async () => {
    expectRefusal(await send(path, 'size', '10737418241'), 413, 'payload_too_large', 'size');
    expectRefusal(await send(path, 'size', '9007199254740991'), 413, 'payload_too_large', 'size');
  });

  test('every bad field is named, not only the first', async () => {
    expectRefusal(await call(path, { json: { filename: '', size: 0, ttl: 1, authMode: 'secret', extra: 1 } }), 400, 'invalid_request', 'filename', 'size', 'ttl', 'authMode', 'extra');
  });
});

const refusedTexts: Readonly<Record<string, readonly unknown[]>> = {
  mimeType: ['', 'text', 'text/', '/plain', 'text/plain\r\nX: y', 'text/plain; x', 'text/plain\u0000', 'täxt/plain', `text/${'x'.repeat(255)}`, 5, null],
  authMode: ['', 'OPEN', 'closed', '__proto__', 1, null, ['open']],
  policyTemplateId: ['', 'Public', 'toString', 'constructor', '__proto__', 1, null],
  allowedAgentIds: ['a,b', 'agent', null, {}, 5, ['a b'], ['a,b'], [''], [5], [null], ['x'.repeat(129)], ['a\u0000'], [['a']], Array.from({ length: 101 }, (_, index) => `agent-${index}`)],
  policyMetadata: [null, 'x', [], { a: 1 }, { a: null }, { a: { b: 'c' } }, { '': 'x' }, { a: 'x\u0000' }, { 'a\u0000': 'x' }, { a: '\ud800' }, { '\udfff': 'x' }, { a: 'x'.repeat(257) }, { ['x'.repeat(65)]: 'x' },
    Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`k${index}`, 'x']))],
  sha256: ['', 'abc', 'A'.repeat(64), `${'a'.repeat(63)}g`, 'a'.repeat(65), null, 5],
};

describe('texts and lists of POST /api/transfer-plan', () => {
  test.each(Object.entries(refusedTexts).flatMap(([field, values]) => values.map((value) => [field, value] as const)))('%s %j answers invalid_request', async (field, value) => {
    const answer = await call('/api/transfer-plan', { json: { ...good, [field]: value } });
    expectRefusal(answer, 400, 'invalid_request');
    expect(answer.json.errors[0].path.split('.')[0]).toBe(field);
  });

  test('an agent share must name agents, and an open one none', async () => {
    expectRefusal(await call('/api/transfer-plan', { json: { ...good, authMode: 'agent' } }), 400, 'invalid_request', 'allowedAgentIds');
    expectRefusal(await call('/api/transfer-plan', { json: { ...good, authMode: 'agent', allowedAgentIds: [] } }), 400, 'invalid_request', 'allowedAgentIds');
    expectRefusal(await call('/api/transfer-plan', { json: { ...good, authMode: 'open', allowedAgentIds: ['a'] } }), 400, 'invalid_request', 'allowedAgentIds');
  });

  test('100 agents are good, and one that stands twice is one', async () => {
    const agents = Array.from({ length: 100 }, (_, index) => `agent-${index}`);
    expect((await plan({ ...good, authMode: 'agent', allowedAgentIds: agents }))['release']).toMatchObject({ mode: 'agent', allowedAgentIds: agents });
    expect((await plan({ ...good, authMode: 'agent', allowedAgentIds: ['a', 'b', 'a'] }))['release']).toMatchObject({ allowedAgentIds: ['a', 'b'] });
  });

  test('16 labels with names of 64 and values of 256 characters are good', async () => {
    const labels = Object.fromEntries(Array.from({ length: 16 }, (_, index) => [`${index}`.padStart(64, 'k'), '"\\\n👩‍👩‍👧'.padEnd(256, 'v')]));
    const { shareId } = await upload('x', { policyMetadata: labels });
    expect((await must(`/api/share/${shareId}`)).json.policy.metadata).toEqual(labels);
  });
});

/** What a name must not hold: nothing that leaves a folder, ends a header or cannot be written down. */
const refusedNames: [string, string][] = [
  ['a path upwards', '../etc/passwd'], ['a path upwards on Windows', '..\\boot.ini'], ['an absolute path', '/etc/passwd'], ['a folder', 'a/b'], ['two dots', '..'], ['one dot', '.'], ['a drive', 'C:\\x'],
  ['U+0000', 'a\u0000.txt'], ['CR LF', 'a\r\nSet-Cookie: x=y'], ['a tab', 'a\tb'], ['DEL', 'a\u007f'], ['a C1 control', 'a\u0085b'], ['a line separator', 'a\u2028b'], ['a paragraph separator', 'a\u2029b'],
  ['a lone high surrogate', 'a\ud800'], ['a lone low surrogate', '\udc00a'], ['nothing', ''], ['256 bytes', 'x'.repeat(256)], ['256 bytes in 128 letters', 'ä'.repeat(128)],
];

/** What may be a name, however strange: it is kept, shown and sent back as it was. */
const keptNames: [string, string][] = [
  ['a drive letter', 'C:'], ['a device', 'CON'], ['a device with ending', 'nul.txt'], ['both quotes', `"a'b"`], ['an encoded line end', 'a%0d%0ab'], ['an encoded slash', '..%2f..%2fetc'], ['a leading =', '=HYPERLINK("x")'],
  ['a leading dash', '--help'], ['a leading dot', '.htaccess'], ['a trailing dot and space', 'a. '], ['a space', ' '], ['semicolons', 'a;filename=b'], ['a backtick', '`id`'], ['a dollar', '${HOME}'], ['a right-to-left override', 'a\u202Efdp.exe'],
  ['an emoji', '👩‍👩‍👧.png'], ['other scripts', 'отчёт-报告-تقرير'], ['a byte order mark', '\ufeffa'], ['255 bytes', 'x'.repeat(255)], ['255 bytes in letters of three', '報'.repeat(85)], ['__proto__', '__proto__'], ['markup', '<b>&amp;'],
];

describe('names of files', () => {
  test.each(refusedNames)('%s answers invalid_request', async (_title, filename) => {
    for (const path of creating) expectRefusal(await call(path, { json: { ...good, filename } }), 400, 'invalid_request', 'filename');
  });

  test.each([[5], [null], [['a.txt']], [{ name: 'a' }], [true]])('%j is no name', async (filename) => {
    expectRefusal(await call('/api/transfer-plan', { json: { ...good, filename } }), 400, 'invalid_request', 'filename');
  });

  test.each(keptNames)('%s is kept', async (_title, filename) => {
    const { shareId, downloadUrl } = await upload('x', { filename });
    expect((await must(`/api/share/${shareId}`)).json.filename).toBe(filename);
    const disposition = (await must(downloadUrl)).headers.get('content-disposition')!;
    const [, plain, encoded] = /^attachment; filename="([^"\\]*)"; filename\*=UTF-8''([A-Za-z0-9!#$&+.^_`|~%-]*)$/.exec(disposition) ?? [];
    expect(decodeURIComponent(encoded ?? 'nothing'), disposition).toBe(filename);
    expect(plain).toMatch(/^[\x20-\x7e]*$/);
  });

  test('a name in NFD becomes NFC, and its bytes are counted after that', async () => {
    const { shareId } = await upload('x', { filename: 'A\u030Angstro\u0308m.txt' });
    expect((await must(`/api/share/${shareId}`)).json.filename).toBe('\u00C5ngstr\u00F6m.txt');
    expect((await call('/api/transfer-plan', { json: { ...good, filename: 'a\u0308'.repeat(127) } })).status).toBe(201);
  });
});

describe('ids', () => {
  const header = { 'x-transfer-plan': 'garbage' };
  test.each([
    ['GET', '/api/share/trf_abc', 400, 'invalid_request', 'shareId'], ['GET', '/api/share/SHR_abc', 400, 'invalid_request', 'shareId'], ['GET', '/api/share/shr_', 400, 'invalid_request', 'shareId'], ['GET', '/api/share/', 400, 'invalid_request', 'shareId'],
    ['GET', '/api/share/shr_%00', 400, 'invalid_request', 'shareId'], ['GET', "/api/share/shr_'or'1", 400, 'invalid_request', 'shareId'], ['GET', '/api/share/shr_absent', 404, 'share_not_found_or_expired', ''],
    ['GET', '/api/dl/shr_abc', 404, 'transfer_not_found', ''], ['GET', '/api/dl/trf_', 404, 'transfer_not_found', ''], ['GET', '/api/dl/trf_absent', 404, 'transfer_not_found', ''],
    ['GET', '/api/dl/trf_absent?share_id=trf_absent', 404, 'share_not_found_or_expired', ''], ['GET', '/api/dl/trf_absent?share_id=', 404, 'share_not_found_or_expired', ''], ['GET', '/api/dl/trf_absent?share_id=shr_absent', 404, 'share_not_found_or_expired', ''],
    ['DELETE', '/api/dl/shr_abc', 400, 'invalid_request', 'id'], ['DELETE', '/api/dl/trf_absent', 401, 'delete_token_required', ''],
    ['GET', '/api/upload/multipart/status?uploadId=trf_abc', 400, 'invalid_request', 'uploadId'], ['GET', '/api/upload/multipart/status?uploadId=mpu_absent', 404, 'multipart_upload_not_found', ''],
    ['GET', '/api/upload/multipart/status?uploadId=multipart_absent', 404, 'multipart_upload_not_found', ''],
  ])('%s %s answers %i %s %s', async (method, path, status, code, field) => {
    expectRefusal(await call(path, { method }), status, code, ...(field === '' ? [] : [field]));
  });

  test('a lane with the id of something else, or without a plan, is refused', async () => {
    expectRefusal(await call('/api/lane/single/pln_abc', { method: 'PUT', body: 'x' }), 401, 'plan_required');
    expectRefusal(await call('/api/lane/single/trf_abc', { method: 'PUT', body: 'x', headers: header }), 403, 'plan_mismatch');
    expectRefusal(await call('/api/lane/single/pln_abc', { method: 'PUT', body: 'x', headers: header }), 403, 'plan_mismatch');
    for (const query of ['ttl=29', 'ttl=abc', 'maxUses=0', 'maxUses=1e3', 'allowedAgentIds=a%20b', 'size=1', 'ttl=30&ttl=31']) {
      expectRefusal(await call(`/api/lane/single/pln_abc?${query}`, { method: 'PUT', body: 'x', headers: header }), 400, 'invalid_request', query.split('=')[0]!);
    }
  });
});

describe('headers', () => {
  test.each([['garbage'], ['agrt_'], [`agrt_${'x'.repeat(2_000)}`], ['AGRT_abc.def'], ['agrt_abc.def, agrt_abc.def'], [`aat_${randomUUID()}`], ['dlt_abc.def'], ['']])('X-Access-Grant %.20s answers invalid_grant', async (grant) => {
    const { downloadUrl } = await upload('x');
    expectRefusal(await call(downloadUrl, { headers: { 'x-access-grant': grant } }), 403, 'invalid_grant');
  });

  test.each([['garbage'], ['dlt_abc.def'], ['agrt_abc.def'], ['']])('X-Delete-Token %.20s answers invalid_delete_token', async (token) => {
    const { id } = await upload('x');
    expectRefusal(await call(`/api/dl/${id}`, { method: 'DELETE', headers: { 'x-delete-token': token } }), 403, 'invalid_delete_token');
  });

  test('an X-Delete-Token in another case, or of another transfer, is not the one', async () => {
    const [mine, other] = [await upload('x'), await upload('y')];
    for (const token of [mine.deleteToken.toUpperCase(), other.deleteToken, `${mine.deleteToken}x`, mine.deleteToken.slice(0, -1)]) {
      expectRefusal(await call(`/api/dl/${mine.id}`, { method: 'DELETE', headers: { 'x-delete-token': token } }), 403, 'invalid_delete_token');
    }
    expect((await call(mine.downloadUrl)).status).toBe(200);
  });

  test.each([['two words'], ['x'.repeat(256)], ['ümlaut']])('Idempotency-Key %.20s answers invalid_request', async (key) => {
    for (const path of creating) expectRefusal(await call(path, { json: good, headers: { 'idempotency-key': key } }), 400, 'invalid_request', 'Idempotency-Key');
  });
});
