/** POST /api/agent/auth: a short-lived access token for an agent key. */
import { SignJWT } from 'jose';
import type { Handler } from '../../../shared/contract.ts';
import type { agents } from '../../../shared/contracts/agents.ts';
import { fail } from '../../../shared/errors.ts';
import { eventOf } from '../../../shared/events.ts';
import type { Deps } from '../deps.ts';

export const authenticateAgent = ({ clock, keys, limits, publish }: Deps): Handler<typeof agents.authenticateAgent> =>
  async function authenticateAgent(_input, context) {
    const { caller } = context;
    if (caller.type !== 'agent') throw fail('agent_auth_required');
    const exp = Math.floor(clock() / 1_000) + limits.accessTokenTtl;
    const token = await new SignJWT({ key: caller.keyId })
      .setProtectedHeader({ alg: 'HS256', typ: 'at+jwt' })
      .setSubject(caller.agentId).setIssuedAt(Math.floor(clock() / 1_000)).setExpirationTime(exp)
      .sign(keys.accessToken[0]!);
    publish(eventOf(context, clock(), { eventType: 'agent.authenticated', targetType: 'agent_key', targetId: caller.keyId }));
    return { accessToken: `aat_${token}`, tokenType: 'Bearer', expiresAt: new Date(exp * 1_000).toISOString(), agentId: caller.agentId };
  };
