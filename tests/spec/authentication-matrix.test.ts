/** Which form of credential is accepted: every kind at one endpoint of each sort (interface chapter: Authentication). Every route is in authorisation.test.ts. */
import { beforeAll, describe, expect, test } from 'vitest';
import { makeCredentials, type Credentials } from '../support/credentials.ts';
import { sharedExchange, type Answer, type Request } from '../support/exchange.ts';
import { expectRefusal } from '../support/refusals.ts';

const exchange = sharedExchange();
const { call, signIn, upload } = exchange;

/** Short names of the answers below; all of the refusals are 401. */
const codes: Readonly<Record<string, string>> = {
  'agent?': 'agent_auth_required',
  'owner?': 'owner_auth_required',
  'token?': 'delete_token_required',
  'no agent': 'invalid_agent_credential',
  'no owner': 'invalid_owner_credential',
};

/**
 * resolve: of an agent share; agent: POST /api/agent/grants and POST /api/agent/auth; owner: what wants the owner session;
 * delete: of a transfer of the owner, without its token; create: the plan, where a credential is optional.
 */
const columns = ['resolve', 'agent', 'owner', 'delete', 'create'] as const;
const table = `
none                                 | agent?   | agent?   | owner?   | token?   | ok
agent key                            | ok       | ok       | no owner | token?   | ok
agent key, scheme in another case    | ok       | ok       | no owner | token?   | ok
agent key after two spaces           | ok       | ok       | no owner | token?   | ok
revoked agent key                    | no agent | no agent | no owner | no agent | no agent
agent key with the secret of another | no agent | no agent | no owner | no agent | no agent
agent key in another case            | no agent | no agent | no owner | no agent | no agent
agent key without Bearer             | no agent | no agent | no owner | no agent | no agent
two agent keys                       | no agent | no agent | no owner | no agent | no agent
access token                         | ok       | no agent | no owner | no agent | no agent
access token of a revoked key        | no agent | no agent | no owner | no agent | no agent
garbage Bearer                       | no agent | no agent | no owner | no agent | no agent
empty Bearer                         | no agent | no agent | no owner | no agent | no agent
Basic                                | no agent | no agent | no owner | no agent | no agent
owner session                        | no agent | no agent | ok       | ok       | ok
owner session cookie                 | agent?   | agent?   | ok       | ok       | ok
owner session that ended             | no agent | no agent | no owner | no owner | no owner
owner session with another secret    | no agent | no agent | no owner | no owner | no owner
agent key as a session cookie        | agent?   | agent?   | no owner | token?   | ok
`;
const rows = table.trim().split('\n').map((line) => line.split('|').map((cell) => cell.trim()));

interface Endpoint {
  readonly route: string;
  readonly column: (typeof columns)[number];
  /** The status of an accepted credential. */
  readonly ok: number;
  /** The request; `owned` is the session of the owner of all things. */
  readonly request: (made: { credentials: Credentials; shareId: string; owned: string }) => Promise<[string, Request]>;
}

const file = { filename: 'a.txt', size: 1 };

const endpoints: readonly Endpoint[] = [
  { route: 'GET /api/share/{shareId}', column: 'resolve', ok: 200, request: async ({ shareId }) => [`/api/share/${shareId}`, {}] },
  { route: 'POST /api/agent/grants', column: 'agent', ok: 201, request: async ({ shareId }) => ['/api/agent/grants', { json: { shareId } }] },
  { route: 'POST /api/agent/auth', column: 'agent', ok: 200, request: async () => ['/api/agent/auth', { method: 'POST' }] },
  { route: 'DELETE /api/owner/session', column: 'owner', ok: 200, request: async () => ['/api/owner/session', { method: 'DELETE' }] },
  { route: 'GET /api/audit', column: 'owner', ok: 200, request: async () => ['/api/audit?limit=1', {}] },
  {
    route: 'DELETE /api/dl/{id}', column: 'delete', ok: 200,
    request: async ({ owned }) => [`/api/dl/${(await upload('to be deleted', {}, owned)).id}`, { method: 'DELETE' }],
  },
  { route: 'POST /api/transfer-plan', column: 'create', ok: 201, request: async () => ['/api/transfer-plan', { json: file }] },
];

let made: { credentials: Credentials; shareId: string; owned: string };
beforeAll(async () => {
  const credentials = await makeCredentials(exchange);
  const owned = await signIn();
  const { shareId } = await upload('for one agent', { authMode: 'agent', allowedAgentIds: [credentials.agent.agentId] }, owned);
  made = { credentials, shareId, owned };
});

test('the table has a row for every kind of credential', () => {
  expect(rows.map(([kind]) => kind).sort()).toEqual(Object.keys(made.credentials.headersOf).sort());
});

describe.each(endpoints)('$route', ({ column, ok, request }) => {
  const expected = (row: string[]) => row[1 + columns.indexOf(column)]!;

  test.each(rows.map((row) => [row[0]!, expected(row)]))('%s: %s', async (kind, outcome) => {
    const [path, asked] = await request(made);
    const answer: Answer = await call(path, { ...asked, headers: await made.credentials.headersOf[kind]!() });
    if (outcome === 'ok') expect(answer.status, answer.text).toBe(ok);
    else expectRefusal(answer, 401, codes[outcome]!);
    for (const secret of [made.credentials.agent.key, made.owned]) expect(answer.text).not.toContain(secret);
  });
});

describe('the fetch of an open share looks at no credential', () => {
  test('GET /api/dl/{id} answers whatever Authorization says', async () => {
    const { downloadUrl } = await upload('open to all');
    for (const headersOf of Object.values(made.credentials.headersOf)) {
      expect((await call(downloadUrl, { headers: await headersOf() })).text).toBe('open to all');
    }
  });
});
