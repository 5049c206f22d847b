/** POST /api/agent/grants: one fetch of an agent share for an agent on its list. */
import type { Handler, HandlerContext } from '../../../shared/contract.ts';
import type { grants } from '../../../shared/contracts/grants.ts';
import { fail, failField, type Failure } from '../../../shared/errors.ts';
import { eventOf } from '../../../shared/events.ts';
import { newId } from '../../../shared/ids.ts';
import type { Deps } from '../deps.ts';
import { sealGrant } from '../domain/grant.ts';
import { allowsAgent, isExhausted, type Share } from '../domain/share.ts';
import { replayOr } from './replay.ts';

/** What a replayed request needs to make the same token again. */
interface Issued {
  readonly grantId: string;
  readonly exp: number;
}

export const issueGrant = (deps: Deps): Handler<typeof grants.issueGrant> =>
  async function issueGrant(input, context) {
    const { store, clock, keys, limits } = deps;
    const { shareId } = input;
    const { caller } = context;
    if (caller.type !== 'agent') throw fail('agent_auth_required');
    let target: Pick<Share, 'targetType' | 'targetId'> | undefined;

    const issued = await replayOr<Issued>(deps, {
      contract: 'issueGrant', input, context,
      make: async (seal) => {
        const grant: Issued = { grantId: newId('grant'), exp: Math.floor(clock() / 1_000) + limits.grantTtl };
        const event = eventOf(context, clock(), {
          eventType: 'grant.issued', targetType: 'grant', targetId: grant.grantId, shareId,
          data: { expiresAt: new Date(grant.exp * 1_000).toISOString() },
        });
        target = await store.issueGrant({ shareId, agentId: caller.agentId }, event, seal(grant));
        if (!target) throw await explainRefusal(deps, shareId, context);
        return grant;
      },
    });

    target ??= await store.findTarget(shareId);
    if (!target) throw fail('share_not_found_or_expired');
    const token = sealGrant({ ...issued, shareId, targetId: target.targetId, agentId: caller.agentId }, keys.grant);
    return { accessToken: token, targetType: target.targetType, targetId: target.targetId, expiresAt: new Date(issued.exp * 1_000).toISOString() };
  };

/** Says why no grant was issued, and records it for the share's owner. */
async function explainRefusal({ store, clock, publish }: Deps, shareId: string, context: HandlerContext): Promise<Failure> {
  const share = await store.findShare(shareId);
  if (!share) return fail('share_not_found_or_expired');
  if (share.mode === 'open') return failField('shareId', 'is an open share: fetch it with share_id, without a grant');
  const agentId = context.caller.type === 'agent' ? context.caller.agentId : '';
  const code = !allowsAgent(share, agentId) ? 'agent_not_allowed_for_share' : isExhausted(share) ? 'share_use_limit_exceeded' : 'share_not_found_or_expired';
  publish(eventOf(context, clock(), {
    eventType: 'grant.denied', targetType: 'share', targetId: shareId, shareId, ownerId: share.ownerId, outcome: 'denied', code,
  }));
  return fail(code);
}
