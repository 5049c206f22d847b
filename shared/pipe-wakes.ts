/** Words from storage to the gateways that something of a pipe changed. They may be lost: whoever follows a pipe looks from time to time, too. */
import type { Bus } from './rpc.ts';

/** Disjoint from the subjects of requests and events, so that no stream keeps it and nobody answers it. */
function subjectOf(pipeId: string): string {
  return `aex.pipe.${pipeId}`;
}

/** Says that bytes of a pipe were recorded, or that it ended. */
export function announcePipe(bus: Pick<Bus, 'connection' | 'isConnected'>, pipeId: string): void {
  if (bus.isConnected()) bus.connection.publish(subjectOf(pipeId));
}

/** Calls back at every word about a pipe. The answer stops it. */
export function onPipeChange(bus: Pick<Bus, 'connection'>, pipeId: string, wake: () => void): () => void {
  const subscription = bus.connection.subscribe(subjectOf(pipeId), { callback: () => wake() });
  return () => subscription.unsubscribe();
}
