/** Whom a credential belongs to, the policy service knows: how every other service asks it. */
import type { Caller, Credential, RequestContext } from './contract.ts';
import { agents } from './contracts/agents.ts';
import { fail } from './errors.ts';
import { ownContext, type Bus } from './rpc.ts';

/** Makes a service's `identify`. Throws `invalid_agent_credential` or `invalid_owner_credential`. */
export function identifyBy(bus: Pick<Bus, 'call'>) {
  return async function identify(credential: Credential, context: RequestContext): Promise<Caller> {
    if (credential.kind === 'unknown') throw fail('invalid_agent_credential');
    const { caller } = await bus.call(agents.identifyCaller, { credential }, ownContext(context));
    return caller;
  };
}
