/** When a piece of a stream is stored: soon enough for whoever reads along, and seldom enough for the database. */

/** Milliseconds. */
export interface PiecePace {
  /** Without a byte after which what came is stored. */
  readonly quietMs: number;
  /** After which it is stored even though bytes keep coming. */
  readonly ageMs: number;
}

/** More pieces than this in one upload make its list too long to keep, where pieces do not merge. */
const manyPieces = 10_000;
/** So many pieces make the pauses between them twice as long. */
const doubling = 1_000;
const mergedMost = 250;

/**
 * The pace after so many pieces. A sender that lets a byte drip in now and then does not get a row for each: the pauses grow,
 * to a quarter of a second where neighbouring pieces merge, and elsewhere until only full pieces are stored.
 * @param firstMs the pause at the start
 */
export function paceAfter(pieces: number, merges: boolean, firstMs: number): PiecePace {
  if (!merges && pieces >= manyPieces) return { quietMs: Infinity, ageMs: Infinity };
  const grown = firstMs * 2 ** (pieces / doubling);
  const quietMs = merges ? Math.max(firstMs, Math.min(grown, mergedMost)) : grown;
  return { quietMs, ageMs: Math.max(200, quietMs) };
}
