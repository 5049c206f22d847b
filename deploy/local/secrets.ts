// The secrets of a stack: made on its first start, kept in files of mode 0600.
import { createHmac, randomBytes } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemCode } from './failure.ts';

/** The e-mail address and password of the owner that the first start makes. */
export interface OwnerAccount {
  email: string;
  password: string;
}

/** The 32 random bytes, as base64url, that are kept in `path`; made when the file is not there. */
export async function keepSecret(path: string): Promise<string> {
  const kept = (await readIfThere(path))?.trim();
  if (kept) return kept;
  const secret = randomBytes(32).toString('base64url');
  await writePrivately(path, `${secret}\n`);
  return secret;
}

/** A password for `purpose` that follows from `secret` and is the same at every start. */
export function derivePassword(secret: string, purpose: string): string {
  return createHmac('sha256', secret).update(`password of ${purpose}`).digest('base64url');
}

/** The first owner's account, kept with the address in `<dataDir>/local.json` for people and scripts. */
export async function keepOwner(dataDir: string, baseUrl: string): Promise<OwnerAccount> {
  const path = join(dataDir, 'local.json');
  const kept = JSON.parse((await readIfThere(path)) ?? '{}') as { owner?: OwnerAccount };
  const owner = kept.owner ?? { email: 'owner@localhost', password: randomBytes(18).toString('base64url') };
  await writePrivately(path, `${JSON.stringify({ baseUrl, owner }, null, 2)}\n`);
  return owner;
}

async function readIfThere(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  });
}

// Renamed into place, so that a start that is killed here leaves no half-written secret behind.
async function writePrivately(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text, { mode: 0o600, flush: true });
  await rename(`${path}.new`, path);
}
