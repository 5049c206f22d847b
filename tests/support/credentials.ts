/** One credential of every kind that a caller may come with, good and bad. */
import type { Agent, Exchange } from './exchange.ts';

export interface Credentials {
  /** An agent with a good key; put it on allow lists. */
  readonly agent: Agent;
  /** Kind -> the headers to send. */
  readonly headersOf: Readonly<Record<string, () => Promise<Record<string, string>>>>;
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

export async function makeCredentials(exchange: Exchange): Promise<Credentials> {
  const { baseUrl, owner, must, signIn, makeAgent } = exchange;
  const session = await signIn();
  const [agent, other] = await Promise.all([makeAgent(session), makeAgent(session)]);
  // Of the same agent, so that its id stays on the allow list.
  const revoked = await makeAgent(session, agent.agentId);
  const { accessToken } = (await must('/api/agent/auth', { method: 'POST', bearer: agent.key })).json;
  const ended = (await must('/api/agent/auth', { method: 'POST', bearer: revoked.key })).json.accessToken as string;
  await must(`/api/agent/keys/${revoked.keyId}`, { method: 'DELETE', bearer: session });
  const signedOut = await signIn();
  await must('/api/owner/session', { method: 'DELETE', bearer: signedOut });
  const secretOf = (token: string) => token.slice(token.indexOf('.') + 1);
  const fixed: Record<string, Record<string, string>> = {
    'none': {},
    'agent key': bearer(agent.key),
    'agent key, scheme in another case': { authorization: `bEARER ${agent.key}` },
    'agent key after two spaces': { authorization: `Bearer  ${agent.key}` },
    'revoked agent key': bearer(revoked.key),
    'agent key with the secret of another': bearer(`agk_${agent.keyId}.${secretOf(other.key)}`),
    'agent key in another case': bearer(agent.key.toUpperCase()),
    'agent key without Bearer': { authorization: agent.key },
    'two agent keys': { authorization: `Bearer ${agent.key}, Bearer ${other.key}` },
    'access token': bearer(accessToken),
    'access token of a revoked key': bearer(ended),
    'garbage Bearer': bearer('garbage'),
    'empty Bearer': { authorization: 'Bearer ' },
    'Basic': { authorization: `Basic ${Buffer.from(`${owner.email}:${owner.password}`).toString('base64')}` },
    'owner session that ended': bearer(signedOut),
    'agent key as a session cookie': { cookie: `aex_session=${agent.key}`, origin: new URL(baseUrl).origin },
  };
  return {
    agent,
    headersOf: {
      ...Object.fromEntries(Object.entries(fixed).map(([kind, headers]) => [kind, async () => headers])),
      // Each use has a session of its own: one of the endpoints ends it.
      'owner session': async () => bearer(await signIn()),
      'owner session cookie': async () => ({
        cookie: (await must('/api/owner/session', { json: owner })).headers.getSetCookie()[0]!.split(';')[0]!, origin: new URL(baseUrl).origin,
      }),
      'owner session with another secret': async () => {
        const [one, two] = [await signIn(), await signIn()];
        return bearer(`${one.split('.')[0]}.${secretOf(two)}`);
      },
    },
  };
}
