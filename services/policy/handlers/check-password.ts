/** Checks an account's password: slowly, and only so many wrong ones of each account and from each address within a time. */
import type { HandlerContext } from '../../../shared/contract.ts';
import { fail, type ErrorCode } from '../../../shared/errors.ts';
import { eventOf } from '../../../shared/events.ts';
import type { Deps } from '../deps.ts';
import { networkOf } from '../domain/network.ts';
import { isPassword } from '../domain/password.ts';
import type { Owner, OwnerWithPassword } from '../store/owners.ts';
import { makeTurns } from '../turns.ts';

interface Check {
  readonly email: string;
  readonly password: string;
  /** The account; read when its turn has come. */
  readonly find: () => Promise<OwnerWithPassword | undefined>;
  /** What a wrong password is answered with. */
  readonly wrong: ErrorCode;
}

/**
 * Makes the function that checks. Promise: an account that does not exist takes as long and is limited as one that does, and while
 * tries are refused, a right password is refused as well, so that nothing is told. Tries at an account wait for each other in
 * this process, so that many right ones at once do not fill the room of the wrong ones.
 */
export function makeCheckPassword({ store, clock, limits, publish }: Pick<Deps, 'store' | 'clock' | 'limits' | 'publish'>) {
  const takeTurn = makeTurns();

  /** @throws rate_limited, and what `wrong` says */
  return async function checkPassword({ email, password, find, wrong }: Check, context: HandlerContext): Promise<Owner & { passwordHash: string }> {
    const trier = { email, network: networkOf(context.address) };
    return takeTurn(email.toLowerCase(), async () => {
      if (context.deadline <= clock()) throw fail('deadline_exceeded');
      const found = await find();
      const refuse = (code: ErrorCode) => publish(eventOf(context, clock(), {
        eventType: 'owner.denied', targetType: null, targetId: null, ownerId: found?.id ?? null, outcome: 'denied', code,
      }));
      const claimed = await store.claimSignIn(trier, limits.signIn);
      if ('retryAfter' in claimed) {
        refuse('rate_limited');
        throw fail('rate_limited', { detail: 'Too many wrong passwords were tried.', retryAfter: claimed.retryAfter });
      }
      if (!(await isPassword(password, found?.passwordHash ?? undefined)) || !found?.passwordHash) {
        refuse(wrong);
        throw fail(wrong);
      }
      await store.returnSignIn(trier, claimed);
      return { ...found, passwordHash: found.passwordHash };
    });
  };
}

export type CheckPassword = ReturnType<typeof makeCheckPassword>;
