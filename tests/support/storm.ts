/** What every storm begins with and ends in: a load with its actors, and the promises that are looked at afterwards. */
import { exchangeAt } from './exchange.ts';
import { eventually, type FaultStack } from './fault-stack.ts';
import { openLedger } from './ledger.ts';
import { startLoad, type Flow } from './load.ts';
import { reconcile, type Doubts } from './reconcile.ts';
import { compareBlobs, reconcileAudit } from './reconcile-audit.ts';
import type { Actors } from './steps.ts';
import { openWire } from './wire.ts';

/** An owner, an agent, and a ledger for what they are told. */
export async function makeActors(stack: FaultStack, wire = openWire(stack.baseUrl)): Promise<Actors> {
  const exchange = exchangeAt(stack.baseUrl, stack.owner);
  const session = await exchange.signIn();
  return { wire, ledger: openLedger(), session, agent: await exchange.makeAgent(session) };
}

/** Runs `faults` under load. Everything that was begun has its answer when this resolves. */
export async function storm(actors: Actors, faults: () => Promise<void>, more: readonly Flow[] = []): Promise<void> {
  const load = startLoad(actors, more);
  try {
    await waitForChange(actors, 10_000);
    await faults();
    await waitForChange(actors, 10_000);
  } finally {
    await load.stop();
  }
}

/** Waits until a change that ends from now on is acknowledged. Answers whether that came in time. */
export async function waitForChange({ ledger }: Actors, withinMs: number): Promise<boolean> {
  const since = Date.now();
  return eventually(() => ledger.lastChange > since, Boolean, withinMs);
}

/** Whether /readyz says so within a time. */
export async function becomes(stack: FaultStack, ready: boolean, withinMs: number): Promise<boolean> {
  const status = async () => (await fetch(`${stack.baseUrl}/readyz`, { signal: AbortSignal.timeout(10_000) }).catch(() => undefined))?.status;
  const wanted = ready ? 200 : 503;
  return (await eventually(status, (got) => got === wanted, withinMs)) === wanted;
}

/** Every promise that a storm must leave unbroken; what is broken, by name. */
export async function brokenPromises(actors: Actors, stack: FaultStack, doubts?: Doubts): Promise<Record<string, unknown>> {
  const told = await reconcile(actors, doubts);
  const recorded = await reconcileAudit(actors, stack);
  const { orphans, missing } = await compareBlobs(stack);
  const { stored, grants } = actors.ledger;
  const { statuses, longestMs } = actors.wire;
  process.stdout.write(`${stored.length} stored, ${stored.filter(({ deleted }) => deleted).length} deleted, ${grants.length} grants; answers ${JSON.stringify(Object.fromEntries(statuses))}; longest ${Math.round(longestMs)} ms\n`);
  return { told, recorded, orphans, missing };
}

export const unbroken = { told: [], recorded: [], orphans: [], missing: [] };
