/** Where the fs driver keeps its files: `root/<first two characters of the key>/<key>`. */
import { constants } from 'node:fs';
import { mkdir, open, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** The path of a key. No key can leave the root: it is letters and digits only. */
export function pathOf(root: string, key: string): string {
  if (!/^[A-Za-z0-9]{3,128}$/.test(key)) throw new Error('a blob key must be letters and digits');
  return join(root, key.slice(0, 2), key);
}

export function isAbsent(error: unknown): boolean {
  return (error as { code?: string }).code === 'ENOENT';
}

/** Makes the file when it is absent; one that is there keeps its bytes. */
export async function makeFile(path: string): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_CREAT;
  const handle = await open(path, flags, 0o640).catch(async (error: unknown) => {
    if (!isAbsent(error)) throw error;
    await makeFolder(dirname(path));
    return open(path, flags, 0o640);
  });
  await handle.close();
}

/** A new folder must be on disk before a file in it counts as stored. */
async function makeFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o750 });
  await syncFolder(dirname(folder));
}

/** Makes the names in a folder survive a loss of power. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Reads until the buffer is full or the file ends. */
export async function readFully(handle: FileHandle, buffer: Buffer, position: number): Promise<number> {
  let filled = 0;
  while (filled < buffer.length) {
    const { bytesRead } = await handle.read(buffer, filled, buffer.length - filled, position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return filled;
}

/** Writes all chunks at a position; the system may take fewer than it was given. */
export async function writeFully(handle: FileHandle, chunks: readonly Buffer[], position: number): Promise<void> {
  let left = [...chunks];
  let at = position;
  while (left.length > 0) {
    const { bytesWritten } = await handle.writev(left, at);
    at += bytesWritten;
    left = dropBytes(left, bytesWritten);
  }
}

function dropBytes(chunks: Buffer[], count: number): Buffer[] {
  let skip = count;
  let index = 0;
  while (index < chunks.length && chunks[index]!.length <= skip) skip -= chunks[index++]!.length;
  const rest = chunks.slice(index);
  if (skip > 0) rest[0] = rest[0]!.subarray(skip);
  return rest;
}
