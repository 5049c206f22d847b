/** Confirms whom a credential belongs to: the one place that decides it, for this service and for the others. */
import { jwtVerify } from 'jose';
import { z } from 'zod';
import type { Caller, Credential, Handler } from '../../../shared/contract.ts';
import type { agents } from '../../../shared/contracts/agents.ts';
import { fail } from '../../../shared/errors.ts';
import { sameHash } from '../../../shared/tokens.ts';
import type { Deps } from '../deps.ts';

export type Identify = (credential: Credential) => Promise<Caller>;

const accessClaims = z.object({ sub: z.string(), key: z.string() });

/** Makes the function that confirms credentials. Throws `invalid_agent_credential` or `invalid_owner_credential`. */
export function makeIdentify({ store, keys }: Pick<Deps, 'store' | 'keys'>): Identify {
  async function agentOfKey(keyId: string, isRight: (secretHash: string) => boolean): Promise<Caller> {
    const key = await store.findKey(keyId);
    if (!key || key.revokedAt || !isRight(key.secretHash)) throw fail('invalid_agent_credential');
    return { type: 'agent', agentId: key.agentId, ownerId: key.ownerId, keyId: key.keyId };
  }

  return async function identify(credential) {
    switch (credential.kind) {
      case 'agent_key':
        return agentOfKey(credential.keyId, (hash) => sameHash(hash, credential.secretHash));
      case 'access_token': {
        // The token says which key it came from; a revoked key ends it at once.
        const { key } = await openAccessToken(credential.token, keys.accessToken);
        return agentOfKey(key, () => true);
      }
      case 'owner_session': {
        const session = await store.findSession(credential.sessionId);
        if (!session || !sameHash(session.secretHash, credential.secretHash)) throw fail('invalid_owner_credential');
        return { type: 'owner', ownerId: session.owner.id, sessionId: session.id };
      }
      case 'unknown':
        throw fail('invalid_agent_credential');
    }
  };
}

async function openAccessToken(token: string, keys: readonly Buffer[]): Promise<z.output<typeof accessClaims>> {
  for (const key of keys) {
    try {
      const { payload } = await jwtVerify(token.slice('aat_'.length), key, { algorithms: ['HS256'], typ: 'at+jwt', requiredClaims: ['exp', 'sub'] });
      return accessClaims.parse(payload);
    } catch {
      // Signed under an older key, or not by us: try the next.
    }
  }
  throw fail('invalid_agent_credential');
}

export const identifyCaller = (deps: Pick<Deps, 'store' | 'keys'>): Handler<typeof agents.identifyCaller> => {
  const identify = makeIdentify(deps);
  return async function identifyCaller({ credential }) {
    return { caller: await identify(credential) };
  };
};
