/** Passwords as argon2id hashes. Asynchronous, unlike the rest of the domain: hashing takes long on purpose and runs off the event loop. */
import { argon2, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';

const hashWith = promisify(argon2);

/** OWASP's first choice for argon2id: 19 MiB, two passes, one lane. */
const cost = { memory: 19_456, passes: 2, parallelism: 1, tagLength: 32 };

async function derive(password: string, nonce: Buffer): Promise<Buffer> {
  return Buffer.from(await hashWith('argon2id', { message: password.normalize('NFKC'), nonce, ...cost }));
}

/** Hashes a password for storing: `argon2id$<salt>$<hash>`, both base64url. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(16);
  return `argon2id$${salt.toString('base64url')}$${(await derive(password, salt)).toString('base64url')}`;
}

/** A hash that no password has, to spend the same time on an unknown account as on a known one. */
const nobody = `argon2id$${Buffer.alloc(16).toString('base64url')}$${Buffer.alloc(32).toString('base64url')}`;

/** Whether the password belongs to the stored hash; without one, takes as long and says no. */
export async function isPassword(password: string, stored: string | undefined): Promise<boolean> {
  const [, salt, hash] = (stored ?? nobody).split('$');
  const derived = await derive(password, Buffer.from(salt!, 'base64url'));
  return timingSafeEqual(derived, Buffer.from(hash!, 'base64url')) && stored !== undefined;
}
