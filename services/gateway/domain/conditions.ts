/** Conditional and range requests (RFC 9110, sections 13 and 14; interface chapter: Transfer bytes). */

/** What the headers of a fetch ask. */
export interface Conditions {
  readonly ifMatch?: string | undefined;
  readonly ifNoneMatch?: string | undefined;
  readonly ifModifiedSince?: string | undefined;
  readonly ifUnmodifiedSince?: string | undefined;
  readonly ifRange?: string | undefined;
  readonly range?: string | undefined;
}

/** The validators of what is stored. */
export interface Validators {
  readonly etag: string;
  /** Milliseconds since 1970. */
  readonly lastModified: number;
  readonly size: number;
}

/** Bytes from `start` to `end`, both included. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

export type Verdict =
  | { status: 200 }
  | { status: 206; range: ByteRange }
  | { status: 304 }
  | { status: 412 }
  | { status: 416 };

/** Decides what a fetch gets, in the order of RFC 9110, section 13.2.2. */
export function evaluate(conditions: Conditions, stored: Validators): Verdict {
  if (!matchesPreconditions(conditions, stored)) return { status: 412 };
  if (isNotModified(conditions, stored)) return { status: 304 };
  if (conditions.range === undefined || !rangeApplies(conditions, stored)) return { status: 200 };
  const range = parseRange(conditions.range, stored.size);
  if (range === 'ignored') return { status: 200 };
  return range === 'unsatisfiable' ? { status: 416 } : { status: 206, range };
}

function matchesPreconditions({ ifMatch, ifUnmodifiedSince }: Conditions, stored: Validators): boolean {
  if (ifMatch !== undefined) return ifMatch.trim() === '*' || etagsOf(ifMatch).includes(stored.etag);
  if (ifUnmodifiedSince === undefined) return true;
  const date = Date.parse(ifUnmodifiedSince);
  return Number.isNaN(date) || seconds(stored.lastModified) <= seconds(date);
}

function isNotModified({ ifNoneMatch, ifModifiedSince }: Conditions, stored: Validators): boolean {
  if (ifNoneMatch !== undefined) {
    // Weak comparison: a weak validator of the same bytes matches here.
    return ifNoneMatch.trim() === '*' || etagsOf(ifNoneMatch).map((tag) => tag.replace(/^W\//, '')).includes(stored.etag);
  }
  if (ifModifiedSince === undefined) return false;
  const date = Date.parse(ifModifiedSince);
  return !Number.isNaN(date) && seconds(stored.lastModified) <= seconds(date);
}

/** If-Range compares strongly: anything but our very validator means the whole file. */
function rangeApplies({ ifRange }: Conditions, stored: Validators): boolean {
  if (ifRange === undefined) return true;
  if (/^(W\/)?"/.test(ifRange)) return ifRange === stored.etag;
  return Date.parse(ifRange) === seconds(stored.lastModified) * 1_000;
}

const etagsOf = (header: string): string[] => header.match(/(W\/)?"[^"]*"/g) ?? [];
const seconds = (milliseconds: number) => Math.floor(milliseconds / 1_000);

/**
 * Reads one byte range. A header that is malformed, inverted, or asks for several ranges is ignored, as the RFC allows:
 * the answer is then the whole file.
 */
export function parseRange(header: string, size: number): ByteRange | 'ignored' | 'unsatisfiable' {
  const [, first, last] = /^bytes=[ \t]*(\d{0,15})-(\d{0,15})[ \t]*$/i.exec(header) ?? [];
  if (first === undefined || last === undefined || (first === '' && last === '')) return 'ignored';
  if (first === '') {
    const length = Math.min(Number(last), size);
    return length === 0 ? 'unsatisfiable' : { start: size - length, end: size - 1 };
  }
  const start = Number(first);
  if (last !== '' && Number(last) < start) return 'ignored';
  if (start >= size) return 'unsatisfiable';
  return { start, end: last === '' ? size - 1 : Math.min(Number(last), size - 1) };
}
