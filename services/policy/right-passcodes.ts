/**
 * Passcodes that were right a moment ago, so that the many ranges of one download do not wait for a slow hash each.
 * Not the passcode is remembered but its digest under a key that this process alone has; another replica only hashes once more.
 */
import { randomBytes } from 'node:crypto';
import type { Clock } from '../../shared/clock.ts';
import { keyedDigest, sameHash } from '../../shared/tokens.ts';

const rememberedMs = 60_000;
const most = 1_000;

export interface RightPasscodes {
  has(passcodeHash: string, passcode: string): boolean;
  note(passcodeHash: string, passcode: string): void;
}

export function makeRightPasscodes(clock: Clock): RightPasscodes {
  const keys = [randomBytes(32)];
  /** By the stored hash, which no two shares have in common; the oldest first. */
  const right = new Map<string, { digest: string; until: number }>();
  return {
    has(passcodeHash, passcode) {
      const known = right.get(passcodeHash);
      return known !== undefined && known.until > clock() && sameHash(known.digest, keyedDigest(passcode, keys));
    },
    note(passcodeHash, passcode) {
      right.delete(passcodeHash);
      right.set(passcodeHash, { digest: keyedDigest(passcode, keys), until: clock() + rememberedMs });
      for (const [oldest, { until }] of right) {
        if (right.size <= most && until > clock()) break;
        right.delete(oldest);
      }
    },
  };
}
