import { expect, test } from 'vitest';
import { hashPasscode, isPasscode } from './passcode.ts';
import { isPassword } from './password.ts';

const [key, newKey] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];

test('a passcode matches its own hash only, under any key that is still in use', async () => {
  const stored = await hashPasscode('open sesame', [key]);
  expect(stored).not.toContain('open sesame');
  expect(await isPasscode('open sesame', stored, [key])).toBe(true);
  expect(await isPasscode('open sesame', stored, [newKey, key])).toBe(true);
  expect(await isPasscode('open sesame!', stored, [key])).toBe(false);
  expect(await hashPasscode('open sesame', [key])).not.toBe(stored);
});

test('a guess cannot be tried against a hash without the key', async () => {
  const stored = await hashPasscode('1234', [key]);
  expect(await isPasscode('1234', stored, [newKey])).toBe(false);
  expect(await isPassword('1234', stored)).toBe(false);
});

test('the same letters typed in another way are the same passcode', async () => {
  expect(await isPasscode('Schlu\u0308ssel', await hashPasscode('Schl\u00fcssel', [key]), [key])).toBe(true);
});
