// The command line of `npm start`: starts the system, says how to use it, and stops it on Ctrl-C.
import { resolve } from 'node:path';
import { StartFailure } from './failure.ts';
import { startStack, type Stack, type StackOptions } from './stack.ts';
import { commandsToTry } from './commands-to-try.ts';

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** The stack's options as the environment gives them; throws one sentence about a bad one. */
export function readOptions(env: NodeJS.ProcessEnv): StackOptions {
  const port = Number(env['PORT'] || '8787');
  if (!/^\d+$/.test(env['PORT'] || '8787') || port > 65_535) {
    throw new StartFailure(`PORT must be a whole number from 0 to 65535, not "${env['PORT']}".`);
  }
  const baseUrl = env['BASE_URL']?.replace(/\/+$/, '');
  if (baseUrl && !/^https?:$/.test(URL.parse(baseUrl)?.protocol ?? '')) {
    throw new StartFailure(`BASE_URL must be an http or https address, not "${baseUrl}".`);
  }
  return {
    dataDir: env['AEX_DATA_DIR'] || resolve(import.meta.dirname, '../../.data'),
    port,
    ...(env['HOST'] && { host: env['HOST'] }),
    ...(baseUrl && { baseUrl }),
    ...(env['NATS_URL'] && { natsUrl: env['NATS_URL'] }),
    progress: (line) => console.log(line),
  };
}

async function main(): Promise<number> {
  const stopping = stopSignal();
  let stack: Stack | undefined;
  try {
    stack = await startStack({ ...readOptions(process.env), signal: stopping });
    console.log(welcome(stack));
    await aborted(stopping);
    await stack.stop();
  } catch (error) {
    if (!stopping.aborted || stack) return complain(error);
  }
  console.log('Stopped.');
  return 0;
}

// A second signal is the same wish: a terminal and the process above us may both pass one Ctrl-C on.
function stopSignal(): AbortSignal {
  const controller = new AbortController();
  const stop = () => {
    if (controller.signal.aborted) return;
    console.log('Stopping…');
    controller.abort();
  };
  for (const signal of signals) process.on(signal, stop);
  watchParent(stop);
  return controller.signal;
}

// The process above us, when it is the bootstrap, may be killed without a chance to pass anything on.
function watchParent(stop: () => void): void {
  const parent = Number(process.env['AEX_BOOTSTRAP_PID']);
  delete process.env['AEX_BOOTSTRAP_PID'];
  if (process.ppid !== parent) return;
  setInterval(() => process.ppid !== parent && stop(), 1_000).unref();
}

function aborted(signal: AbortSignal): Promise<void> {
  // Something has to keep this process up while it only waits; the timer is that, and nothing else.
  const timer = setInterval(() => undefined, 1 << 30);
  return new Promise((resolve) => {
    const done = () => {
      clearInterval(timer);
      resolve();
    };
    if (signal.aborted) done();
    else signal.addEventListener('abort', done, { once: true });
  });
}

function complain(error: unknown): number {
  const known = error instanceof StartFailure;
  console.error(known ? error.message : `The start failed: ${error instanceof Error ? error.message : error}`);
  return 1;
}

function welcome({ baseUrl, owner, dataDir }: Stack): string {
  return [
    '',
    `Asset exchange runs at ${baseUrl}`,
    '',
    `  owner     ${owner.email}`,
    `  password  ${owner.password}`,
    `  data      ${dataDir}`,
    '',
    'Try it from another terminal:',
    ...commandsToTry(baseUrl, owner).flatMap(({ purpose, command }) => ['', `# ${purpose}`, command]),
    '',
    'Ctrl-C stops everything; the data stays.',
  ].join('\n');
}

process.exitCode = await main();
