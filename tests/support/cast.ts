/** Everybody who may come to a resource of one owner: those it is for, and all the others. */
import { randomUUID } from 'node:crypto';
import type { Agent, Exchange, Uploaded } from './exchange.ts';

/** Column of the table -> who that is. */
export const callers = {
  nobody: 'no credential',
  other: 'the session of another owner',
  theirs: 'the key of an agent of another owner',
  wrong: 'the key of another agent of the same owner',
  named: 'the key of the agent that made the resource or is on its allow list',
  owner: 'the session of the owner',
  token: 'an access token of the named agent',
  ended: 'a session of the owner that was ended',
  revoked: 'a revoked key of the named agent',
  garbage: 'a Bearer token of no known form',
  proof: 'no credential, but the grant, delete token and plan of another target',
} as const;
export type CallerName = keyof typeof callers;

export interface Cast {
  readonly owner: { readonly id: string; readonly email: string; readonly password: string; readonly session: string };
  readonly named: Agent;
  readonly wrong: Agent;
  /** The headers a caller sends. */
  readonly headersOf: Readonly<Record<CallerName, Record<string, string>>>;
  /** The headers of somebody of the same sort, whose sessions may be ended. */
  standIn(name: CallerName): Promise<Record<string, string>>;
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

export async function makeCast(exchange: Exchange): Promise<Cast> {
  const { must, makeAgent, makeOwner } = exchange;
  const first = await exchange.signIn();
  // Of their own, so that nothing of theirs changes but by this cast.
  const [owner, other] = [await makeOwner(first, { admin: true }), await makeOwner(first)];
  const [named, wrong, theirs] = [await makeAgent(owner.session), await makeAgent(owner.session), await makeAgent(other.session)];
  const revoked = await makeAgent(owner.session, named.agentId);
  await must(`/api/agent/keys/${revoked.keyId}`, { method: 'DELETE', bearer: owner.session });
  const { email, password } = owner;
  const ended = (await must('/api/owner/session', { json: { email, password } })).json.token as string;
  await must('/api/owner/session', { method: 'DELETE', bearer: ended });
  const { accessToken } = (await must('/api/agent/auth', { method: 'POST', bearer: named.key })).json as { accessToken: string };
  const headersOf: Cast['headersOf'] = {
    nobody: {},
    other: bearer(other.session),
    theirs: bearer(theirs.key),
    wrong: bearer(wrong.key),
    named: bearer(named.key),
    owner: bearer(owner.session),
    token: bearer(accessToken),
    ended: bearer(ended),
    revoked: bearer(revoked.key),
    garbage: bearer(`agk_${randomUUID()}`),
    proof: await proofOfAnotherTarget(exchange, { session: other.session, agent: theirs }),
  };
  return {
    owner, named, wrong, headersOf,
    standIn: async (name) => (name === 'owner' || name === 'other' ? bearer((await makeOwner(first)).session) : headersOf[name]),
  };
}

/** Good proofs, each for a target that is not the one asked for. */
async function proofOfAnotherTarget({ upload, grant, plan }: Exchange, { session, agent }: { session: string; agent: Agent }): Promise<Record<string, string>> {
  const sent: Uploaded = await upload('elsewhere', { authMode: 'agent', allowedAgentIds: [agent.agentId] }, session);
  return {
    'x-access-grant': await grant(sent.shareId, agent.key),
    'x-delete-token': sent.deleteToken,
    'x-transfer-plan': (await plan({ filename: 'elsewhere.txt', size: 9, lane: 'multipart' }, session)).plan,
    'x-share-passcode': 'the passcode of another',
  };
}
