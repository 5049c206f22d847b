/** Another gateway of a running stack: the same settings, another port. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { findFreePort } from '../../deploy/local/free-port.ts';
import type { Stack } from '../../deploy/local/stack.ts';
import { root } from './source-files.ts';

export interface SecondGateway {
  readonly baseUrl: string;
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** `env` are the settings that the stack's own gateway was given beside the usual. */
export async function startSecondGateway(stack: Pick<Stack, 'baseUrl' | 'natsUrl' | 'dataDir'>, env: Record<string, string>): Promise<SecondGateway> {
  const port = await findFreePort();
  const own = { HOST: '127.0.0.1', PORT: String(port), BASE_URL: stack.baseUrl, NATS_URL: stack.natsUrl, BLOB_ROOT: join(stack.dataDir, 'blobs'), AEX_EXIT_WITH_PARENT: '1' };
  const child = spawn(process.execPath, [join(root, 'services/gateway/main.ts')], { cwd: root, env: { ...process.env, ...own, ...env }, stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  await new Promise<void>((resolve, reject) => {
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      if (output.includes('"msg":"ready"')) resolve();
    });
    void ended.then(([code]) => reject(new Error(`the second gateway ended with ${code}: ${output}`)));
  });
  // What it says later is of no interest, but has to go somewhere.
  child.stdout.removeAllListeners('data').resume();
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    async stop(signal = 'SIGTERM') {
      child.kill(signal);
      await ended;
    },
  };
}
