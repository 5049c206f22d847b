/** Checks the passcode of a fetch: slowly, and only so many wrong ones of each share within a time. */
import type { RequestContext } from '../../../shared/contract.ts';
import { fail, type ErrorCode, type Failure, type FailureDetails } from '../../../shared/errors.ts';
import type { Deps } from '../deps.ts';
import { isPasscode } from '../domain/passcode.ts';
import { makeRightPasscodes } from '../right-passcodes.ts';
import { makeTurns } from '../turns.ts';

interface Check {
  readonly shareId: string;
  readonly passcodeHash: string;
  readonly passcode: string | undefined;
  /** Records a refusal and makes its failure. */
  readonly refuse: (code: ErrorCode, details?: FailureDetails) => Failure;
}

/**
 * Makes the function that checks. A try is claimed before it is hashed and given back when it was right. Tries of a share wait for each
 * other in this process, so that many right ones at once do not fill the room of the wrong ones.
 */
export function makeCheckPasscode({ store, clock, keys, limits }: Pick<Deps, 'store' | 'clock' | 'keys' | 'limits'>) {
  const takeTurn = makeTurns();
  const right = makeRightPasscodes(clock);

  const isRight = async (passcode: string, passcodeHash: string) => right.has(passcodeHash, passcode) || isPasscode(passcode, passcodeHash, keys.passcode);

  /** @throws passcode_required, invalid_passcode, rate_limited */
  return async function checkPasscode({ shareId, passcodeHash, passcode, refuse }: Check, { deadline }: RequestContext): Promise<void> {
    if (!passcode) throw refuse('passcode_required');
    await takeTurn(shareId, async () => {
      if (deadline <= clock()) throw fail('deadline_exceeded');
      const claimed = await store.claimTry(shareId, limits.passcode);
      if ('retryAfter' in claimed) throw refuse('rate_limited', { detail: 'Too many wrong passcodes were tried on this share.', retryAfter: claimed.retryAfter });
      if (!(await isRight(passcode, passcodeHash))) throw refuse('invalid_passcode');
      right.note(passcodeHash, passcode);
      await store.returnTry(shareId, claimed);
    });
  };
}
