/** Seals the first answer of a request with an idempotency key: it may hold a secret, and what is stored must not. */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { Operation } from '../../../shared/operation.ts';

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
