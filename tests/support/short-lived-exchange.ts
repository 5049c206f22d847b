/** An exchange of its own whose plans, uploads, grants and tokens live only as long as a test can wait. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startStack } from '../../deploy/local/stack.ts';
import { exchangeAt, type Exchange } from './exchange.ts';

/** Seconds: the shortest that the settings of plans, access tokens and shares allow. */
export const shortLife = 30;

export async function startShortLived(): Promise<{ exchange: Exchange; stop: () => Promise<void> }> {
  const dataDir = await mkdtemp(join(tmpdir(), 'aex-short-'));
  const life = String(shortLife);
  const stack = await startStack({
    dataDir, port: 0, quiet: true, logLevel: 'error',
    env: {
      policy: { PLAN_TTL_SECONDS: life, GRANT_TTL_SECONDS: life, ACCESS_TOKEN_TTL_SECONDS: life, SWEEP_SECONDS: '1' },
      storage: { UPLOAD_TTL_SECONDS: life, SWEEP_SECONDS: '1' },
    },
  });
  return {
    exchange: exchangeAt(stack.baseUrl, stack.owner),
    async stop() {
      await stack.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
