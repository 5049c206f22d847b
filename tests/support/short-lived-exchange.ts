/** An exchange of its own whose plans, uploads, grants and tokens live only as long as a test can wait. */
import { startOwnStack, type OwnStack } from './own-stack.ts';

/** Seconds: the shortest that the settings of access tokens and shares allow. */
export const shortLife = 30;

export async function startShortLived(): Promise<OwnStack> {
  const life = String(shortLife);
  return startOwnStack({
    policy: { PLAN_TTL_SECONDS: life, GRANT_TTL_SECONDS: life, ACCESS_TOKEN_TTL_SECONDS: life, SWEEP_SECONDS: '1' },
    storage: { UPLOAD_TTL_SECONDS: life, SWEEP_SECONDS: '1' },
  });
}
