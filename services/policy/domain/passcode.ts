/**
 * The passcode of a share, as a slow hash of its keyed digest: without AEX_SECRET nobody can try guesses against a hash,
 * not the holder of a plan that carries one, nor of a dump of the database. Asynchronous, as passwords are.
 */
import { keyedDigest } from '../../../shared/tokens.ts';
import { hashPassword, isPassword } from './password.ts';

/** Letters that look the same count as the same, however they were typed. */
const keyed = (passcode: string, key: Buffer) => keyedDigest(passcode.normalize('NFKC'), [key]);

export function hashPasscode(passcode: string, keys: readonly Buffer[]): Promise<string> {
  return hashPassword(keyed(passcode, keys[0]!));
}

/** Whether the passcode belongs to the stored hash, made under any of the keys. */
export async function isPasscode(passcode: string, stored: string, keys: readonly Buffer[]): Promise<boolean> {
  for (const key of keys) {
    if (await isPassword(keyed(passcode, key), stored)) return true;
  }
  return false;
}
