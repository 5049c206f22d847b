/** What a response tells of its bytes: a name and a type that are safe to store, whatever the other server says. */
import { filename as filenameSchema, mimeType as mimeTypeSchema } from '../../../shared/contracts/fields.ts';
import { headerText } from './header-text.ts';

/** The headers that describe a body, as they came: bytes as Latin-1. */
export interface SourceHeaders {
  readonly 'content-disposition'?: string | undefined;
  readonly 'content-type'?: string | undefined;
}

const unnamed = 'download';
const anyBytes = 'application/octet-stream';
const longestName = 255;

/** What names must not contain, and marks that turn the direction of what follows: they make one name look like another. */
// eslint-disable-next-line no-control-regex
const unsafe = /[\u0000-\u001f\u007f-\u009f/\\\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** Name from Content-Disposition, else from the last part of the path; type from Content-Type. */
export function describeSource(url: URL, headers: SourceHeaders): { filename: string; mimeType: string } {
  const named = dispositionName(headers['content-disposition'] ?? '') ?? lastSegment(url.pathname);
  return { filename: safeName(named), mimeType: safeType(headers['content-type'] ?? '') };
}

/** A name near to the given one that can be stored; any text becomes one. */
export function safeName(text: string): string {
  const name = cut(text.toWellFormed().normalize('NFC').replace(unsafe, '_').trim()).trimEnd();
  return filenameSchema.safeParse(name).success ? name : unnamed;
}

/** At most 255 bytes, without half a character. */
function cut(text: string): string {
  let bytes = 0;
  let end = 0;
  for (const character of text) {
    bytes += Buffer.byteLength(character);
    if (bytes > longestName) return text.slice(0, end);
    end += character.length;
  }
  return text;
}

/** A media type as it came, without its parameters when only those are malformed. */
function safeType(text: string): string {
  const given = text.trim();
  const bare = given.split(';')[0]!.trim();
  return [given, bare].find((type) => mimeTypeSchema.safeParse(type).success) ?? anyBytes;
}

/** `filename*` (RFC 8187) before `filename`, as RFC 6266 wants it. */
function dispositionName(header: string): string | undefined {
  const [, extended] = /(?:^|;)\s*filename\*\s*=\s*utf-8'[^']*'([^;\s]*)/i.exec(header) ?? [];
  const decoded = extended && decode(extended);
  if (decoded) return decoded;
  const [, quoted, token] = /(?:^|;)\s*filename\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s]*))/i.exec(header) ?? [];
  const name = quoted?.replace(/\\(.)/g, '$1') ?? token;
  return name ? headerText(name) : undefined;
}

function lastSegment(pathname: string): string {
  const segment = pathname.slice(pathname.lastIndexOf('/') + 1);
  return decode(segment) ?? segment;
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
