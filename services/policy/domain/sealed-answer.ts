/** Seals the first answer of a request with an idempotency key: it may hold a secret, and what is stored must not. */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import type { Caller } from '../../../shared/contract.ts';

/** One idempotent operation: which it is, and what was asked. */
export interface Operation {
  readonly scope: string;
  readonly requestDigest: string;
}

/** Whose operation ids are told apart from whose. Anonymous callers are known by their address only. */
function callerScope(caller: Caller, address: string | undefined): string {
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

export function operationOf(request: { caller: Caller; address?: string; operationId: string; contract: string; input: unknown }): Operation {
  return {
    scope: hash(`${callerScope(request.caller, request.address)}\n${request.operationId}`),
    requestDigest: hash(`${request.contract}\n${canonical(request.input)}`),
  };
}

/** AES-256-GCM, bound to its operation: nonce, tag, ciphertext. */
export function sealAnswer(answer: unknown, operation: Operation, keys: readonly Buffer[]): Buffer {
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', keys[0]!, nonce).setAAD(Buffer.from(operation.scope));
  const sealed = Buffer.concat([cipher.update(JSON.stringify(answer)), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]);
}

/** Opens what `sealAnswer` made under any of the keys. Answers undefined when none fits. */
export function openAnswer(sealed: Buffer, operation: Operation, keys: readonly Buffer[]): unknown {
  for (const key of keys) {
    try {
      const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, 12))
        .setAAD(Buffer.from(operation.scope))
        .setAuthTag(sealed.subarray(12, 28));
      return JSON.parse(Buffer.concat([decipher.update(sealed.subarray(28)), decipher.final()]).toString('utf8')) as unknown;
    } catch {
      // Sealed under an older key: try the next.
    }
  }
  return undefined;
}
