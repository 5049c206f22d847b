/** Who may do what on the retired surfaces, where they are switched on; where they are not, authorisation.test.ts has their rows (interface chapter: Authentication). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callers, makeCast, type CallerName, type Cast } from '../support/cast.ts';
import type { Answer } from '../support/exchange.ts';
import { startOwnStack, type OwnStack } from '../support/own-stack.ts';
import { bytesType, tusLane } from '../support/tus-lane.ts';

/** What cells say; `ok` is let through, all others are refused. */
const codes: Readonly<Record<string, string>> = {
  'agent?': 'agent_auth_required', 'owner?': 'owner_auth_required', 'noAgent': 'invalid_agent_credential', 'noOwner': 'invalid_owner_credential', 'not': 'forbidden',
};
const nameOf = Object.fromEntries(Object.entries(codes).map(([name, code]) => [code, name]));

const table = `
to                                        | nobody | other | theirs | wrong | named | owner | token   | ended   | revoked | garbage | proof
POST /api/upload                          | ok     | ok    | ok     | ok    | ok    | ok    | noAgent | noOwner | noAgent | noAgent | ok
POST /api/tus                             | ok     | ok    | ok     | ok    | ok    | ok    | noAgent | noOwner | noAgent | noAgent | ok
HEAD /api/tus/{uploadId}: of an owner     | owner? | not   | not    | not   | not   | ok    | noAgent | noOwner | noAgent | noAgent | owner?
PATCH /api/tus/{uploadId}: of an owner    | owner? | not   | not    | not   | not   | ok    | noAgent | noOwner | noAgent | noAgent | owner?
DELETE /api/tus/{uploadId}: of an owner   | owner? | not   | not    | not   | not   | ok    | noAgent | noOwner | noAgent | noAgent | owner?
HEAD /api/tus/{uploadId}: of an agent     | agent? | not   | not    | not   | ok    | not   | noAgent | noOwner | noAgent | noAgent | agent?
PATCH /api/tus/{uploadId}: of an agent    | agent? | not   | not    | not   | ok    | not   | noAgent | noOwner | noAgent | noAgent | agent?
DELETE /api/tus/{uploadId}: of an agent   | agent? | not   | not    | not   | ok    | not   | noAgent | noOwner | noAgent | noAgent | agent?
HEAD /api/tus/{uploadId}: of nobody       | ok     | ok    | ok     | ok    | ok    | ok    | noAgent | noOwner | noAgent | noAgent | ok
PATCH /api/tus/{uploadId}: of nobody      | ok     | ok    | ok     | ok    | ok    | ok    | noAgent | noOwner | noAgent | noAgent | ok
DELETE /api/tus/{uploadId}: of nobody     | ok     | ok    | ok     | ok    | ok    | ok    | noAgent | noOwner | noAgent | noAgent | ok
`;
const [[, ...columns], ...rows] = table.trim().split('\n').map((line) => line.split('|').map((cell) => cell.trim())) as [[string, ...CallerName[]], ...[string, ...string[]][]];

let own: OwnStack;
let cast: Cast;
beforeAll(async () => {
  own = await startOwnStack({ gateway: { LEGACY_SURFACES: 'upload,tus' } });
  cast = await makeCast(own.exchange);
});
afterAll(() => own.remove());

function form(): FormData {
  const made = new FormData();
  made.append('file', new Blob(['hello']), 'a.txt');
  return made;
}

/** An upload of whom the row names, with two of its four bytes stored. */
async function begun(kind: string): Promise<string> {
  const lane = tusLane(own.exchange);
  const speaker = { bearer: { 'of an owner': cast.owner.session, 'of an agent': cast.named.key }[kind] };
  const address = await lane.begin(4, { filename: 'a' }, speaker);
  await lane.patch(address, 0, Buffer.from('se'), speaker);
  return address;
}

async function ask(method: string, path: string, headers: Record<string, string>): Promise<Answer> {
  if (path === '/api/upload') return own.exchange.call(path, { body: form(), headers });
  const fields: Record<string, string> = path === '/api/tus' ? { 'upload-length': '4' } : method === 'PATCH' ? { 'upload-offset': '2', 'content-type': bytesType } : {};
  return own.exchange.call(path, { method, headers: { 'tus-resumable': '1.0.0', ...fields, ...headers }, ...(method === 'PATCH' && { body: 'nt' }) });
}

/** HEAD has no body to tell the code by: a GET-like look at its status is enough. */
const byStatus: Readonly<Record<number, readonly string[]>> = { 401: ['agent?', 'owner?', 'noAgent', 'noOwner'], 403: ['not'] };

test('the table asks everybody', () => {
  expect(columns).toEqual(Object.keys(callers));
});

describe('everybody meets what the table says, and a refusal changes nothing', () => {
  test.each(rows)('%s', async (name, ...cells) => {
    const [, method = '', path = '', kind = ''] = /^(\w+) ([^:]+)(?:: (.+))?$/.exec(name) ?? [];
    const expected = Object.fromEntries(columns.map((caller, index) => [caller, cells[index]!])) as Record<CallerName, string>;
    const kept = kind ? await begun(kind) : path;
    const met: Record<string, string> = {};
    for (const caller of columns) {
      const isLetThrough = expected[caller] === 'ok';
      const address = kind && isLetThrough ? await begun(kind) : kept;
      const { status, json } = await ask(method, address, cast.headersOf[caller]);
      const refusal = method === 'HEAD' && byStatus[status]?.includes(expected[caller]) ? expected[caller] : nameOf[json?.code as string];
      met[caller] = status < 400 ? 'ok' : refusal ?? `${status} ${json?.code}`;
    }
    expect(met).toEqual(expected);
    if (!kind) return;
    const sender = { bearer: { 'of an owner': cast.owner.session, 'of an agent': cast.named.key }[kind] };
    expect(await tusLane(own.exchange).head(kept, sender)).toMatchObject({ status: 200, offset: 2 });
  });
});
