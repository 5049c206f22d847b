/** Pieces of blobs that are one whole together. */
import type { ByteRange, Segment } from './blobs.ts';

/** Bytes of the whole. */
export function sizeOfAll(segments: readonly Pick<Segment, 'size'>[]): number {
  return segments.reduce((sum, segment) => sum + segment.size, 0);
}

/** The pieces that make up a range of the whole. */
export function piecesOf(segments: readonly Segment[], { start, end }: ByteRange): Segment[] {
  const pieces: Segment[] = [];
  let at = 0;
  for (const { key, offset, size } of segments) {
    const from = Math.max(start - at, 0);
    const to = Math.min(end - at, size);
    if (from < to) pieces.push({ key, offset: offset + from, size: to - from });
    at += size;
  }
  return pieces;
}
