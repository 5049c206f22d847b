/** Makes identifiers: a kind's prefix and 24 characters of which nobody can guess the next. */
import { randomBytes } from 'node:crypto';

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** 24 letters and digits, 142 bits of chance. Bytes past the last whole multiple of 62 are thrown away, so that every character is equally likely. */
export function randomText(length = 24): string {
  let text = '';
  while (text.length < length) {
    for (const byte of randomBytes(length)) {
      if (byte < 248 && text.length < length) text += alphabet[byte % 62];
    }
  }
  return text;
}

export const prefixes = {
  transfer: 'trf_',
  file: 'fil_',
  share: 'shr_',
  upload: 'mpu_',
  plan: 'pln_',
  agent: 'agt_',
  owner: 'own_',
  grant: 'gnt_',
  group: 'agrp_',
  permission: 'perm_',
} as const;

/** Makes a new id such as `trf_4bX…`. */
export function newId(kind: keyof typeof prefixes): string {
  return prefixes[kind] + randomText();
}
