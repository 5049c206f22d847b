// The embedded NATS server with JetStream; listens on 127.0.0.1 only. NATS_URL names another one instead.
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect } from 'nats';
import { StartFailure } from './failure.ts';
import { findFreePort } from './free-port.ts';
import { findNatsServer, natsVersion } from './nats-binary.ts';
import { SupervisedProcess } from './process.ts';
import { dieWithParent, stopLeftover } from './running.ts';
import { derivePassword } from './secrets.ts';

/** A NATS server; when it is ours its port stays the same until the stack ends. */
export interface Nats {
  url: string;
  readonly pid: number | undefined;
  start: () => Promise<void>;
  /** Ends it; `SIGKILL` is a crash. */
  stop: (signal?: NodeJS.Signals) => Promise<void>;
  restart: (signal?: NodeJS.Signals) => Promise<void>;
  /** Loses everything that JetStream holds, as a broken disk would. */
  wipeStream: () => Promise<void>;
}

const user = 'aex';

/** The server at `url` as it is: somebody else starts and stops it. */
export function externalNats(url: string): Nats {
  const refuse = async () => {
    throw new StartFailure('The NATS server at NATS_URL is not run by this stack.');
  };
  return { url, pid: undefined, start: async () => undefined, stop: async () => undefined, restart: refuse, wipeStream: refuse };
}

/** Finds or fetches a nats-server and starts it. */
export async function startNats(options: {
  dataDir: string;
  /** Folders in which a fetched nats-server may be kept. */
  folders: string[];
  secret: string;
  report: (line: string) => void;
  signal: AbortSignal;
}): Promise<Nats> {
  const { dataDir, secret, report, signal } = options;
  const program = await findNatsServer({ folders: options.folders, report, signal });
  const folder = join(dataDir, 'nats');
  await stopLeftover(join(folder, 'nats.pid'), folder, 'SIGTERM');
  const port = await findFreePort();
  const password = derivePassword(secret, 'nats');
  await writeFile(join(folder, 'nats.conf'), configuration({ folder, port, password, version: await natsVersion(program) }), { mode: 0o600 });
  const url = `nats://${user}:${password}@127.0.0.1:${port}`;
  const server = await supervise({ program, folder, url, log: join(dataDir, 'logs', 'nats.log'), report });
  await startUnlessStopped(server, signal);
  return steer(server, url, join(folder, 'jetstream'));
}

async function startUnlessStopped(server: SupervisedProcess, signal: AbortSignal): Promise<void> {
  const halt = () => void server.stop();
  signal.throwIfAborted();
  signal.addEventListener('abort', halt);
  await server.start().finally(() => signal.removeEventListener('abort', halt));
}

function steer(server: SupervisedProcess, url: string, store: string): Nats {
  const restart = async (signal?: NodeJS.Signals, meanwhile?: () => Promise<void>) => {
    await server.stop(signal);
    await meanwhile?.();
    await server.start();
  };
  return {
    url,
    get pid() {
      return server.pid;
    },
    start: () => server.start(),
    stop: (signal) => server.stop(signal),
    restart,
    wipeStream: () => restart('SIGKILL', () => rm(store, { recursive: true, force: true })),
  };
}

function configuration(options: { folder: string; port: number; password: string; version: number[] }): string {
  const [major = 0, minor = 0] = options.version;
  // Older servers take the setting for a mistake.
  const sync = major > 2 || minor >= 10 ? '\n  sync_interval: always' : '';
  return `listen: "127.0.0.1:${options.port}"
pid_file: ${JSON.stringify(join(options.folder, 'nats.pid'))}
max_payload: 4MB
authorization {
  user: ${user}
  password: "${options.password}"
}
jetstream {
  store_dir: ${JSON.stringify(join(options.folder, 'jetstream'))}${sync}
}
`;
}

async function supervise(options: { program: string; folder: string; url: string; log: string; report: (line: string) => void }): Promise<SupervisedProcess> {
  const [file = options.program, ...args] = [...(await dieWithParent('TERM')), options.program, '-c', join(options.folder, 'nats.conf')];
  return new SupervisedProcess({
    name: 'nats-server',
    command: { file, args },
    outputPath: options.log,
    errorPath: options.log,
    isReady: () => accepts(options.url),
    readyWithinMs: 30_000,
    attempts: 3,
    stopSignal: 'SIGTERM',
    stopWithinMs: 10_000,
    report: options.report,
  });
}

async function accepts(url: string): Promise<boolean> {
  const { username, password, host } = new URL(url);
  try {
    const connection = await connect({ servers: host, user: username, pass: password, reconnect: false, timeout: 2_000 });
    await connection.close();
    return true;
  } catch {
    return false;
  }
}
