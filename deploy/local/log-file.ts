// The files that processes print to: their size, what was added to them, and their rotation.
import { open, rename, stat } from 'node:fs/promises';

const rotateAtBytes = 50 * 1024 * 1024;

/** The size of a file in bytes; 0 when there is none. */
export async function sizeOf(path: string): Promise<number> {
  return (await stat(path).catch(() => undefined))?.size ?? 0;
}

/** Renames a file that has grown large to `<path>.1`, over the one before it. */
export async function rotate(path: string): Promise<void> {
  if ((await sizeOf(path)) > rotateAtBytes) await rename(path, `${path}.1`);
}

/** What was written to a file from the byte `from` on. */
export async function textSince(path: string, from: number): Promise<string> {
  const file = await open(path).catch(() => undefined);
  if (!file) return '';
  try {
    const { buffer, bytesRead } = await file.read({
      buffer: Buffer.alloc(Math.max(0, (await file.stat()).size - from)),
      position: from,
    });
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
}
