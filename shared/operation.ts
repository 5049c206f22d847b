/** What makes two requests the same: the caller's key for the operation, and everything the request asks for (interface chapter: Limits, idempotency). */
import { createHash } from 'node:crypto';
import type { Caller } from './contract.ts';

/** One idempotent operation: which it is, and what was asked. */
export interface Operation {
  readonly scope: string;
  readonly requestDigest: string;
}

/** Whose operation ids are told apart from whose. Anonymous callers are known by their address only. */
export function callerScope(caller: Caller, address: string | undefined): string {
  switch (caller.type) {
    case 'owner': return `owner:${caller.ownerId}`;
    case 'agent': return `agent:${caller.agentId}`;
    case 'anonymous': return `anonymous:${address ?? ''}`;
  }
}

const hash = (text: string) => createHash('sha256').update(text).digest('base64url');

/** JSON with sorted keys, so that the same request has the same digest however its fields were ordered. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    inner && typeof inner === 'object' && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

/** A caller's operation id as it is stored: neither the id nor the address can be read from it. */
export function operationScope(caller: Caller, address: string | undefined, operationId: string): string {
  return hash(`${callerScope(caller, address)}\n${operationId}`);
}

/** An operation id that everybody who may change a target shares. */
export function targetScope(targetId: string, operationId: string): string {
  return hash(`target:${targetId}\n${operationId}`);
}

/** A digest of what a request asks of a contract. */
export function requestDigest(contract: string, input: unknown): string {
  return hash(`${contract}\n${canonical(input)}`);
}

export function operationOf(request: { caller: Caller; address?: string; operationId: string; contract: string; input: unknown }): Operation {
  return {
    scope: operationScope(request.caller, request.address, request.operationId),
    requestDigest: requestDigest(request.contract, request.input),
  };
}
