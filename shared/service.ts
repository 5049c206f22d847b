/** A service's life: settings, connections, health, draining, and the two ways to end. */
import { badSettingsExit, commonSettings, readSettings, SettingsError } from './settings.ts';
import { makeLogger, type Logger } from './log.ts';
import { makeMetrics, type Metrics } from './metrics.ts';
import { answerProbes } from './probes.ts';
import { connectBus, type Bus } from './rpc.ts';
import { runTask } from './service-tasks.ts';
import { startTracing } from './tracing.ts';
import type { z } from 'zod';

/** Exit status of a process that was told to stop before it had begun, as of one that the signal ended. */
const stoppedEarlyExit = 143;

export interface Running {
  /** Whether what this process alone depends on answers, such as its database; NATS is asked anyway. */
  isReady?(): Promise<boolean>;
  /** Stops taking work, finishes what is under way, closes connections. Called once. */
  stop(): Promise<void>;
}

type Settings<S extends z.ZodRawShape> = z.output<z.ZodObject<S & typeof commonSettings>>;

/**
 * Runs a service until it is told to stop: reads its settings, connects to NATS, starts it, logs `ready`.
 * A bad setting is one sentence on stderr and exit status 78. With an argument it does that task instead, and ends: see `service-tasks.ts`.
 */
export async function runService<S extends z.ZodRawShape>(
  name: string,
  settingsShape: S,
  start: (parts: { settings: Settings<S>; bus: Bus; log: Logger; metrics: Metrics }) => Promise<Running>,
): Promise<void> {
  let stop: () => void = () => process.exit(stoppedEarlyExit);
  // From the first moment on: the first process of a container is ended by no signal that it does not listen to.
  process.on('SIGTERM', () => stop());
  process.on('SIGINT', () => stop());
  const shape = { ...commonSettings, ...settingsShape };
  const [task] = process.argv.slice(2);
  if (task) return runTask(task, { name, shape }).catch(exitOnBadSettings);
  const settings = readSettingsOrExit(shape) as Settings<S>;
  const common = settings as z.output<z.ZodObject<typeof commonSettings>>;
  const log = makeLogger(name, common.LOG_LEVEL);
  process.on('unhandledRejection', (error) => {
    // Something escaped every handler: the state is unknown, and a fresh process is cheap.
    log.fatal({ err: error }, 'unhandled rejection');
    process.exit(1);
  });
  const metrics = makeMetrics(name);
  let isReady = async () => false;
  if (common.METRICS_PORT !== undefined) await answerProbes(common.METRICS_PORT, () => isReady(), metrics);
  const stopTracing = await startTracing(name, common);
  const bus = await connectBus(common.NATS_URL, name, log);
  const running = await start({ settings, bus, log, metrics }).catch(exitOnBadSettings);
  isReady = async () => bus.isConnected() && (await running.isReady?.()) !== false;
  stop = once(() => {
    isReady = async () => false;
    return shutDown({ running, bus, log, stopTracing, drainMs: common.DRAIN_SECONDS * 1_000 });
  });
  if (common.AEX_EXIT_WITH_PARENT === '1') process.stdin.resume().on('end', stop).on('error', stop);
  // Whoever started the service waits for this line, whatever the log level is.
  process.stdout.write(`${JSON.stringify({ level: 'info', time: new Date().toISOString(), service: name, msg: 'ready' })}\n`);
}

function readSettingsOrExit<S extends z.ZodRawShape>(shape: S): z.output<z.ZodObject<S>> {
  try {
    return readSettings(shape);
  } catch (error) {
    return exitOnBadSettings(error);
  }
}

function exitOnBadSettings(error: unknown): never {
  if (!(error instanceof SettingsError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exit(badSettingsExit);
}

function once(work: () => Promise<void>): () => void {
  let begun = false;
  return () => {
    if (begun) return;
    begun = true;
    void work();
  };
}

interface ToStop {
  readonly running: Running;
  readonly bus: Bus;
  readonly log: Logger;
  readonly stopTracing: () => Promise<void>;
  readonly drainMs: number;
}

async function shutDown({ running, bus, log, stopTracing, drainMs }: ToStop): Promise<void> {
  log.info('stopping');
  setTimeout(() => process.exit(1), drainMs).unref();
  await running.stop().catch((error: unknown) => log.error({ err: error }, 'stopping failed'));
  await bus.close().catch(() => undefined);
  await stopTracing().catch((error: unknown) => log.warn({ err: error }, 'the last spans could not be sent'));
  log.info('stopped');
  process.exit(0);
}
