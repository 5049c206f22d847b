/** The CRC-32 of a whole from those of its pieces, so that no byte is read a second time for it. */

/** Coefficients of the polynomial, lowest power at the highest bit, as in ZIP and zlib. */
const polynomial = 0xedb88320;

/** A product of two remainders. */
function multiply(a: number, b: number): number {
  let product = 0;
  for (let bit = 0x80000000, shifted = b; bit !== 0; bit >>>= 1) {
    if ((a & bit) !== 0) product ^= shifted;
    shifted = (shifted & 1) !== 0 ? (shifted >>> 1) ^ polynomial : shifted >>> 1;
  }
  return product >>> 0;
}

/** The remainder of x to the power of eight times `bytes`: what so many zero bytes behind a message do to its CRC. */
function powerOf(bytes: number): number {
  let power = 0x80000000;
  for (let left = bytes, square = 0x00800000; left > 0; left = Math.floor(left / 2)) {
    if (left % 2 === 1) power = multiply(power, square);
    square = multiply(square, square);
  }
  return power;
}

/** The CRC-32 of pieces that follow each other. `size` in bytes. */
export function combineCrc32(pieces: readonly { readonly crc32: number; readonly size: number }[]): number {
  return pieces.reduce((crc, piece) => (multiply(crc, powerOf(piece.size)) ^ piece.crc32) >>> 0, 0);
}
