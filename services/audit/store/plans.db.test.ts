/** How PostgreSQL answers queries of the audit record: by an index for every filter, however seldom it matches, and never by a scan. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../../shared/db.ts';
import { makeScratchDatabase, type ScratchDatabase } from '../../../tests/support/scratch-database.ts';
import type { Filters } from '../domain/filters.ts';
import { openPartitionStore } from './partitions.ts';
import { readInOrder, selectEvents } from './select-events.ts';

const months = 8;
const rows = 48_000;
/** Pages of 8 KiB that one answer may look at: a few of each partition's index, and one for each event of the page. */
const mostBuffers = 40 + 8 * months + 51;

let scratch: ScratchDatabase;
let database: Database;

/**
 * One owner has most of it. A fifth is of one share, of which nobody was granted anything; one agent is busy, but never with shares that are resolved.
 * Every statistic misleads about some of these.
 */
const generate = (from: number, to: number) => `
  insert into events select gen_random_uuid(), '2026-01-01'::timestamptz + n * interval '${(months * 30 * 86_400) / rows} seconds', event_type,
    case when n % 7 = 3 then 'own_' || n % 50 else 'own_big' end,
    case when n % 5 = 0 then 'agent-fetcher' when n % 5 = 1 then 'agent-busy' when n % 11 = 0 then null else 'agent-' || n % 200 end,
    case when event_type like 'share%' then 'share' when event_type like 'grant%' then 'grant' when n = 4 then 'folder' else 'file' end,
    case when n % 5 = 0 then 'trf_popular' else 'trf_' || n / 20 end,
    case when n % 5 = 0 then 'shr_popular' else 'shr_' || n / 20 end, '{}'
  from (select n, case when n = 5 then 'share.revoked' when n % 5 = 0 then (array['share.resolved', 'transfer.fetched'])[1 + (n / 5) % 2]
    when n % 5 = 1 then (array['grant.issued', 'transfer.stored'])[1 + (n / 5) % 2]
    else (array['share.created', 'share.resolved', 'transfer.fetched', 'grant.issued'])[1 + n % 4] end as event_type from generate_series(${from}::int, ${to}::int) as n) as made`;

interface Plan {
  readonly 'Node Type': string;
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly 'Actual Loops': number;
  readonly Plans?: readonly Plan[];
}

async function explain(filters: Omit<Filters, 'ownerId'> & { ownerId?: string }): Promise<Plan> {
  const { text, values } = selectEvents({ filters: { ownerId: 'own_big', ...filters }, limit: 51 });
  const [row] = await database.run((sql) => sql.unsafe<{ 'QUERY PLAN': [{ Plan: Plan }] }[]>(`explain (analyze, buffers, format json) ${text}`, values));
  return row!['QUERY PLAN'][0].Plan;
}

const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];

describe('queries of the audit record', () => {
  beforeAll(async () => {
    scratch = await makeScratchDatabase(new URL('./migrations/', import.meta.url), readInOrder);
    database = scratch.database;
    await openPartitionStore(database).makePartitions(Array.from({ length: months }, (_, month) => new Date(Date.UTC(2026, month)).toISOString()));
    for (let from = 0; from < rows; from += 4_000) await database.run((sql) => sql.unsafe(generate(from, from + 3_999)));
    await database.run((sql) => sql`analyze events`);
  }, 60_000);

  afterAll(() => scratch.drop());

  const popular = { shareId: 'shr_popular' };
  const cases: [string, Omit<Filters, 'ownerId'> & { ownerId?: string }][] = [
    ['nothing but the owner', {}],
    ['an owner of few events', { ownerId: 'own_3' }],
    ['an owner of none', { ownerId: 'own_none' }],
    ['a common type', { eventType: 'transfer.fetched' }],
    ['a seldom type', { eventType: 'share.revoked' }],
    ['a type that never occurs', { eventType: 'nothing.happened' }],
    ['a common target type', { targetType: 'share' }],
    ['a seldom target type', { targetType: 'folder' }],
    ['a target type that never occurs', { targetType: 'pipe' }],
    ['a common agent', { agentId: 'agent-busy' }],
    ['an agent that never acted', { agentId: 'agent-none' }],
    ['a popular target', { targetId: 'trf_popular' }],
    ['one target of many', { targetId: 'trf_1000' }],
    ['a target that never was', { targetId: 'trf_none' }],
    ['a popular share', popular],
    ['one share of many', { shareId: 'shr_1000' }],
    ['a share that never was', { shareId: 'shr_none' }],
    ['a type that a busy agent never caused', { agentId: 'agent-busy', eventType: 'share.resolved' }],
    ['a target type that a busy agent never touched', { agentId: 'agent-busy', targetType: 'share' }],
    ['a common type and a common target type that contradict', { eventType: 'transfer.fetched', targetType: 'share' }],
    ['a type that a popular share never had', { ...popular, eventType: 'grant.issued' }],
    ['a type that a popular share had once', { ...popular, eventType: 'share.revoked' }],
    ['an agent that never came to a popular share', { ...popular, agentId: 'agent-busy' }],
    ['a target type that a popular share never had', { ...popular, targetType: 'grant' }],
    ['a type that a popular target never had', { targetId: 'trf_popular', eventType: 'share.created' }],
    ['an agent that never came to a popular target', { targetId: 'trf_popular', agentId: 'agent-busy' }],
    ['a popular share within a day', { ...popular, from: '2026-04-01T00:00:00.000Z', to: '2026-04-02T00:00:00.000Z' }],
    ['everything before the middle', { to: '2026-05-01T00:00:00.000Z' }],
    ['all of them together', { ...popular, eventType: 'transfer.fetched', agentId: 'agent-busy', targetType: 'file', targetId: 'trf_popular' }],
  ];

  test.each(cases)('%s: no scan, few pages', async (_name, filters) => {
    const plan = await explain(filters);
    const types = nodesOf(plan).map((node) => node['Node Type']);
    expect(types.filter((type) => /Seq Scan|Sort|Bitmap/.test(type)), JSON.stringify(plan)).toEqual([]);
    expect(plan['Shared Hit Blocks'] + plan['Shared Read Blocks'], JSON.stringify(plan)).toBeLessThanOrEqual(mostBuffers);
  });

  test('a full page of the newest month does not touch the months before', async () => {
    const scans = nodesOf(await explain({ ...popular })).filter((node) => node['Node Type'].includes('Scan'));
    expect(scans).toHaveLength(months);
    expect(scans.filter((scan) => scan['Actual Loops'] > 0)).toHaveLength(1);
  });

  test('a page in the middle of a walk does not plan for the months after', async () => {
    const { text, values } = selectEvents({ filters: { ownerId: 'own_big' }, after: { occurredAt: '2026-03-10T00:00:00.000Z', id: 'ffffffff-ffff-4fff-8fff-ffffffffffff' }, limit: 51 });
    const lines = await database.run((sql) => sql.unsafe<{ 'QUERY PLAN': string }[]>(`explain ${text}`, values));
    expect(lines.map((line) => line['QUERY PLAN']).join('\n').match(/ on events_2026_\d\d/g)?.sort()).toEqual([' on events_2026_01', ' on events_2026_02', ' on events_2026_03']);
  });
});
