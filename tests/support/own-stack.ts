/** A stack of a test file's own, for what the shared one cannot show: other settings, faults. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startStack, type Stack, type StackOptions } from '../../deploy/local/stack.ts';
import { exchangeAt, type Exchange } from './exchange.ts';
import { blobSettings } from './object-store.ts';

export interface OwnStack {
  readonly stack: Stack;
  readonly exchange: Exchange;
  /** Ends the stack and removes its folder. */
  remove(): Promise<void>;
}

/** Starts a stack in a folder of its own, on a free port. `env` holds settings by service. Requests are limited only where it says so: one machine sends them all. */
export async function startOwnStack(env: NonNullable<StackOptions['env']> = {}): Promise<OwnStack> {
  const dataDir = await mkdtemp(join(tmpdir(), 'aex-own-'));
  const stack = await startStack({ dataDir, port: 0, env: { ...env, gateway: { RATE_LIMITS: 'off', ...env['gateway'] }, storage: { ...blobSettings()['storage'], ...env['storage'] } } });
  return {
    stack,
    exchange: exchangeAt(stack.baseUrl, stack.owner),
    async remove() {
      await stack.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
