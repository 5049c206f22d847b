/** The response headers of a transfer: enough to resume and verify it, nothing that lets it run (interface chapter: Transfer bytes). */
import { failField } from '../../../shared/errors.ts';

export interface TransferFacts {
  readonly id: string;
  readonly filename: string;
  readonly mimeType: string;
  readonly size: number;
  readonly sha256?: string | undefined;
  readonly createdAt: string;
}

/** Types that a browser could run as a page or script; they are served as bytes. */
const active = /html|xml|svg|script|wasm|flash|multipart|message|mixed-replace|x-httpd|pdf/i;

/** The stored type when it is safe to name it, otherwise plain bytes. */
export function safeType(mimeType: string): string {
  return active.test(mimeType) ? 'application/octet-stream' : mimeType;
}

/** The strong validator: the bytes of a transfer never change under its id. */
export function etagOf(id: string): string {
  return `"${id}"`;
}

/** RFC 6266: a plain name for old clients, and the true one in UTF-8. Nothing in a name can end the header or the quotes. */
export function disposition(filename: string): string {
  const plain = filename.replace(/[^\x20-\x7e]|["\\%;]/g, '_');
  const encoded = encodeURIComponent(filename).replace(/['()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`;
}

/** The headers that GET, HEAD and every part of a transfer share; Content-Length is the range's to say. */
export function transferHeaders(facts: TransferFacts): Record<string, string> {
  return {
    'Content-Type': safeType(facts.mimeType),
    'Content-Disposition': disposition(facts.filename),
    ETag: etagOf(facts.id),
    'Last-Modified': new Date(facts.createdAt).toUTCString(),
    'Accept-Ranges': 'bytes',
    ...(facts.sha256 && { 'Repr-Digest': `sha-256=:${Buffer.from(facts.sha256, 'hex').toString('base64')}:` }),
    'Content-Security-Policy': "sandbox; default-src 'none'",
    'Cross-Origin-Resource-Policy': 'same-origin',
  };
}

/**
 * The SHA-256 of a Content-Digest header (RFC 9530) in hexadecimal; undefined when it names none.
 * One that cannot be read is refused: its sender counts on the check.
 * @throws invalid_request
 */
export function contentDigest(header: string): string | undefined {
  const [, value] = /(?:^|,)\s*sha-256=:([A-Za-z0-9+/]{43}=):/.exec(header) ?? [];
  if (value === undefined && /(?:^|,)\s*sha-256\b/i.test(header)) throw failField('Content-Digest', 'must be sha-256=:<44 characters of base64>:');
  return value && Buffer.from(value, 'base64').toString('hex');
}
