/** Hashes the passcode of a request that already has a plan: it adds one, or says the planned one again. */
import type { Handler } from '../../../shared/contract.ts';
import type { plans } from '../../../shared/contracts/plans.ts';
import { fail } from '../../../shared/errors.ts';
import type { Deps } from '../deps.ts';
import * as passcodes from '../domain/passcode.ts';

export const hashPasscode = ({ keys }: Pick<Deps, 'keys'>): Handler<typeof plans.hashPasscode> =>
  async function hashPasscode({ passcode, planned }) {
    if (planned === undefined) return { passcodeHash: await passcodes.hashPasscode(passcode, keys.passcode) };
    if (await passcodes.isPasscode(passcode, planned, keys.passcode)) return { passcodeHash: planned };
    const message = 'differs from what was planned';
    throw fail('plan_mismatch', { detail: `passcode: ${message}`, errors: [{ path: 'passcode', message }] });
  };
