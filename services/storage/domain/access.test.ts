import { describe, expect, test } from 'vitest';
import type { Caller } from '../../../shared/contract.ts';
import { checkSender, mayDelete } from './access.ts';
import type { Creator } from './transfer.ts';

const callers: Record<string, Caller> = {
  nobody: { type: 'anonymous' },
  owner: { type: 'owner', ownerId: 'own_a', sessionId: 's' },
  otherOwner: { type: 'owner', ownerId: 'own_b', sessionId: 's' },
  agent: { type: 'agent', agentId: 'agt_a', ownerId: 'own_a', keyId: 'k' },
  sibling: { type: 'agent', agentId: 'agt_b', ownerId: 'own_a', keyId: 'k' },
  otherAgent: { type: 'agent', agentId: 'agt_c', ownerId: 'own_b', keyId: 'k' },
};
const byNobody: Creator = { ownerId: null, agentId: null };
const byOwner: Creator = { ownerId: 'own_a', agentId: null };
const byAgent: Creator = { ownerId: 'own_a', agentId: 'agt_a' };

function outcomes(work: (caller: Caller) => unknown): Record<string, unknown> {
  return Object.fromEntries(Object.entries(callers).map(([name, caller]) => {
    try {
      return [name, work(caller) ?? 'allowed'];
    } catch (error) {
      return [name, (error as { code: string }).code];
    }
  }));
}

describe('access', () => {
  test('an upload begun by nobody goes on for whoever knows its id', () => {
    expect(new Set(Object.values(outcomes((caller) => { checkSender(caller, byNobody); })))).toEqual(new Set(['allowed']));
  });

  test('an upload begun by an owner goes on with that owner', () => {
    expect(outcomes((caller) => { checkSender(caller, byOwner); })).toEqual({
      nobody: 'owner_auth_required', owner: 'allowed', otherOwner: 'forbidden', agent: 'forbidden', sibling: 'forbidden', otherAgent: 'forbidden',
    });
  });

  test('an upload begun by an agent goes on with that agent', () => {
    expect(outcomes((caller) => { checkSender(caller, byAgent); })).toEqual({
      nobody: 'agent_auth_required', owner: 'forbidden', otherOwner: 'forbidden', agent: 'allowed', sibling: 'forbidden', otherAgent: 'forbidden',
    });
  });

  test('a transfer is deleted by its owner or the agent that made it', () => {
    expect(outcomes((caller) => mayDelete(caller, byAgent))).toEqual({ nobody: false, owner: true, otherOwner: false, agent: true, sibling: false, otherAgent: false });
    expect(outcomes((caller) => mayDelete(caller, byOwner))).toEqual({ nobody: false, owner: true, otherOwner: false, agent: false, sibling: false, otherAgent: false });
    expect(Object.values(outcomes((caller) => mayDelete(caller, byNobody)))).not.toContain(true);
  });
});
