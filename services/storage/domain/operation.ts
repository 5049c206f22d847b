/** What makes two requests the same: the caller's key for the operation, and everything the request asks for. */
import { createHash } from 'node:crypto';
import type { Caller } from '../../../shared/contract.ts';

/** A request with an idempotency key, as it is stored: neither the key nor the address can be read from it. */
export function operationHash(caller: Caller, address: string | undefined, operationId: string): string {
  return sha256(`${scopeOf(caller, address)}\n${operationId}`);
}

function scopeOf(caller: Caller, address: string | undefined): string {
  switch (caller.type) {
    case 'agent': return `agent:${caller.agentId}`;
    case 'owner': return `owner:${caller.ownerId}`;
    case 'anonymous': return `anonymous:${address ?? ''}`;
  }
}

/** A digest of a request in which the order of its fields does not matter. */
export function requestDigest(request: object): string {
  return sha256(JSON.stringify(request, sortKeys));
}

function sortKeys(_key: string, value: unknown): unknown {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
