/** The life of a floor's process: it is told its settings, says where it listens, and ends with whoever started it. */
import { once } from 'node:events';

export interface FloorSettings {
  readonly natsUrl: string;
  readonly databaseUrl: string;
  /** The scratch schema. */
  readonly schema: string;
  /** The subject that the echo service answers, with a last token for each kind of answer. */
  readonly subject: string;
  /** Where the file server keeps its files. */
  readonly folder: string;
}

/** Waits for the settings. */
export async function receiveSettings(): Promise<FloorSettings> {
  process.on('disconnect', () => process.exit(0));
  const [settings] = (await once(process, 'message')) as [FloorSettings];
  return settings;
}

/** Says that the floor serves; `port` is 0 for one without HTTP. */
export function sayReady(port: number): void {
  process.send?.(port);
}
