/** Tokens derived from AEX_SECRET: a forged one is rejected without a query, and none is stored. */
import { createHash, createHmac, createPrivateKey, createPublicKey, hkdfSync, timingSafeEqual, type KeyObject } from 'node:crypto';

/** What a derived key is for; two purposes never share a key. */
export type Purpose = 'delete token' | 'grant' | 'access token' | 'plan' | 'cursor' | 'share cursor' | 'passcode' | 'request digest' | 'answer' | 'oidc flow';

/** One key for each entry of AEX_SECRET, newest first: the first makes, all verify. */
export function deriveKeys(secrets: readonly Buffer[], purpose: Purpose): Buffer[] {
  return secrets.map((secret) => Buffer.from(hkdfSync('sha256', secret, '', `asset exchange: ${purpose}`, 32)));
}

function macOf(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

/** A digest of a secret that whoever reads it cannot try guesses against: that takes the key. */
export function keyedDigest(secret: string, keys: readonly Buffer[]): string {
  return macOf(keys[0]!, secret).toString('base64url');
}

/** Constant-time comparison of a given MAC with the one that belongs to the text, under any of the keys. */
function macMatches(keys: readonly Buffer[], text: string, given: string): boolean {
  const bytes = Buffer.from(given, 'base64url');
  // Base64url has more than one spelling of the same bytes; only the one we make is ours.
  if (bytes.length !== 32 || bytes.toString('base64url') !== given) return false;
  let matches = false;
  for (const key of keys) matches = timingSafeEqual(macOf(key, text), bytes) || matches;
  return matches;
}

/** Makes `<prefix>_<payload>.<mac>`, the payload as base64url JSON. Readable by the holder, not changeable. */
export function sealToken(prefix: string, payload: object, keys: readonly Buffer[]): string {
  const body = `${prefix}_${Buffer.from(JSON.stringify(payload)).toString('base64url')}`;
  return `${body}.${macOf(keys[0]!, body).toString('base64url')}`;
}

/** Opens a token made by `sealToken`. Answers undefined for anything that these keys did not make. */
export function openToken(prefix: string, token: string, keys: readonly Buffer[]): unknown {
  const [body, mac, rest] = token.split('.');
  if (!body?.startsWith(`${prefix}_`) || !mac || rest !== undefined) return undefined;
  if (!macMatches(keys, body, mac)) return undefined;
  return JSON.parse(Buffer.from(body.slice(prefix.length + 1), 'base64url').toString('utf8')) as unknown;
}

/** The delete token of a transfer: `dlt_<id>.<mac>`. The same transfer always has the same one, so a replayed answer can show it again. */
export function makeDeleteToken(transferId: string, keys: readonly Buffer[]): string {
  const body = `dlt_${transferId.slice(transferId.indexOf('_') + 1)}`;
  return `${body}.${macOf(keys[0]!, body).toString('base64url')}`;
}

/** Whether a token is the delete token of this transfer. */
export function isDeleteToken(token: string, transferId: string, keys: readonly Buffer[]): boolean {
  const [body, mac, rest] = token.split('.');
  if (body !== `dlt_${transferId.slice(transferId.indexOf('_') + 1)}` || !mac || rest !== undefined) return false;
  return macMatches(keys, body, mac);
}

/** SHA-256 of a secret part, in base64url: what leaves the gateway and what is stored in its place. */
export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url');
}

/** Constant-time comparison of two hashes made by `hashSecret`. */
export function sameHash(a: string, b: string): boolean {
  const left = Buffer.from(a, 'base64url');
  const right = Buffer.from(b, 'base64url');
  return left.length === right.length && timingSafeEqual(left, right);
}

export interface PlanKey {
  readonly kid: string;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

/** An Ed25519 private key is its 32-byte seed behind this fixed PKCS #8 header (RFC 8410). */
const ed25519Header = Buffer.from('302e020100300506032b657004220420', 'hex');

/** The Ed25519 keys that sign plans, newest first; `kid` is the start of the public key's hash. */
export function derivePlanKeys(secrets: readonly Buffer[]): PlanKey[] {
  return deriveKeys(secrets, 'plan').map((seed) => {
    const privateKey = createPrivateKey({ key: Buffer.concat([ed25519Header, seed]), format: 'der', type: 'pkcs8' });
    const publicKey = createPublicKey(privateKey);
    const kid = createHash('sha256').update(publicKey.export({ format: 'der', type: 'spki' })).digest('base64url').slice(0, 16);
    return { kid, privateKey, publicKey };
  });
}
