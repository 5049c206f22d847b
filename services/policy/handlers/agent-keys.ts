/** Agent keys by their owner: make, list, revoke (interface chapter: Authentication). */
import { randomBytes } from 'node:crypto';
import type { Handler } from '../../../shared/contract.ts';
import type { agents } from '../../../shared/contracts/agents.ts';
import { fail } from '../../../shared/errors.ts';
import { eventOf } from '../../../shared/events.ts';
import { newId, randomText } from '../../../shared/ids.ts';
import { hashSecret } from '../../../shared/tokens.ts';
import type { Deps } from '../deps.ts';
import { ownerOf } from '../domain/owner.ts';
import type { AgentKey } from '../store/agent-keys.ts';
import { replayOr } from './replay.ts';

export const createAgentKey = (deps: Deps): Handler<typeof agents.createAgentKey> =>
  async function createAgentKey(input, context) {
    const { store, clock } = deps;
    const ownerId = ownerOf(context.caller);
    return replayOr(deps, {
      contract: 'createAgentKey', input, context,
      make: async (seal) => {
        const agentId = input.agentId ?? newId('agent');
        const keyId = randomText(16);
        const secret = randomBytes(32).toString('base64url');
        const answer = { agentId, keyId, key: `agk_${keyId}.${secret}` };
        const event = eventOf(context, clock(), { eventType: 'agent_key.created', targetType: 'agent_key', targetId: keyId, agentId });
        const made = await store.createKey({ keyId, agentId, ownerId, name: input.name ?? null, secretHash: hashSecret(secret) }, event, seal(answer));
        if (!made) throw fail('agent_id_taken');
        return answer;
      },
    });
  };

export const listAgentKeys = ({ store }: Pick<Deps, 'store'>): Handler<typeof agents.listAgentKeys> =>
  async function listAgentKeys(filter, context) {
    const keys = await store.listKeys(ownerOf(context.caller), filter);
    return { count: keys.length, keys: keys.map(toRecord) };
  };

export const revokeAgentKey = ({ store, clock }: Pick<Deps, 'store' | 'clock'>): Handler<typeof agents.revokeAgentKey> =>
  async function revokeAgentKey({ keyId }, context) {
    const ownerId = ownerOf(context.caller);
    const event = eventOf(context, clock(), { eventType: 'agent_key.revoked', targetType: 'agent_key', targetId: keyId });
    await store.revokeKey(keyId, ownerId, event);
    const key = await store.findKey(keyId);
    // Another owner's key is as good as none: that it exists is not ours to tell.
    if (!key || key.ownerId !== ownerId) throw fail('key_not_found');
    return { key: toRecord(key) };
  };

function toRecord({ agentId, keyId, name, createdAt, revokedAt }: AgentKey) {
  return { agentId, keyId, name, createdAt: createdAt.toISOString(), revokedAt: revokedAt?.toISOString() ?? null };
}
