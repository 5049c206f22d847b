/** GET /metrics of every service: what docs/metrics.md lists, and nothing secret (interface chapter: operating). */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sharedExchange } from '../support/exchange.ts';
import { startMeasuredStack, type MeasuredStack } from '../support/measured-stack.ts';
import { root } from '../support/source-files.ts';

const names = ['gateway', 'policy', 'storage', 'audit'] as const;
let own: MeasuredStack;

beforeAll(async () => {
  own = await startMeasuredStack(names);
});
afterAll(() => own.remove());

const scrape = async (name: string) => (await own.at(name, '/metrics')).text();

/** The samples of a name, each with its labels as text. */
async function samples(service: string, name: string): Promise<{ labels: string; value: number }[]> {
  return [...(await scrape(service)).matchAll(new RegExp(`^${name}\\{([^}]*)\\} (\\S+)$`, 'gm'))].map(([, labels, value]) => ({ labels: labels!, value: Number(value) }));
}

const sum = (found: { labels: string; value: number }[], ...having: string[]) =>
  found.filter(({ labels }) => having.every((label) => labels.includes(label))).reduce((total, { value }) => total + value, 0);

describe('GET /metrics', () => {
  test('the page of metrics and the services name the same', async () => {
    const page = readFileSync(join(root, 'docs/metrics.md'), 'utf8');
    const rows = [...page.matchAll(/^\| `(aex_\w+)` \| (\w+) \|[^|]*\| ([^|]+) \|/gm)];
    const listed = rows.flatMap(([, name, kind, services]) => names.filter((service) => (services === 'all but gateway' ? service !== 'gateway' : services!.split(', ').includes(service))).map((service) => `${service} ${name} ${kind}`));
    const told = await Promise.all(names.map(async (service) => [...(await scrape(service)).matchAll(/^# TYPE (aex_\w+) (\w+)$/gm)].map(([, name, kind]) => `${service} ${name} ${kind}`)));
    expect(told.flat().sort()).toEqual(listed.sort());
  });

  test('counts requests, bytes, uses and events', async () => {
    const { exchange } = own;
    const made = await exchange.upload(Buffer.alloc(100_000), { maxUses: 3 });
    for (const _time of [1, 2]) await exchange.must(made.downloadUrl);
    await exchange.upload('small');
    await exchange.call('/api/dl/trf_nothing');
    await expect.poll(async () => sum(await samples('gateway', 'aex_http_request_seconds_count'), 'route="/api/dl/:id"', 'status="200"')).toBe(2);
    expect(sum(await samples('gateway', 'aex_http_request_seconds_count'), 'status="404"')).toBe(1);
    expect(sum(await samples('gateway', 'aex_blob_bytes_total'), 'direction="in"')).toBe(100_000);
    expect(sum(await samples('gateway', 'aex_blob_bytes_total'), 'direction="out"')).toBe(200_000);
    expect(sum(await samples('storage', 'aex_rpc_attached_bytes_total'), 'direction="in"')).toBe(5);
    expect(sum(await samples('policy', 'aex_fetches_allowed_total'), 'spent="use"')).toBe(2);
    expect(sum(await samples('policy', 'aex_rpc_request_seconds_count'), 'contract="spendUse"', 'outcome="ok"')).toBe(2);
    expect(sum(await samples('policy', 'aex_db_statement_seconds_count'))).toBeGreaterThan(0);
    await expect.poll(async () => sum(await samples('audit', 'aex_events_waiting')) + sum(await samples('audit', 'aex_events_unacknowledged')), { timeout: 10_000 }).toBe(0);
  });

  test('a process says that it lives and that it can work', async () => {
    for (const name of names) expect((await Promise.all(['/livez', '/readyz', '/other'].map((path) => own.at(name, path)))).map(({ status }) => status)).toEqual([200, 200, 404]);
  });

  test('with a port of its own it is nowhere else; without one the gateway answers this machine alone', async () => {
    expect((await own.exchange.call('/metrics')).status).toBe(404);
    const { call } = sharedExchange();
    expect((await call('/metrics')).text).toContain('# TYPE aex_http_request_seconds histogram');
    for (const name of ['X-Forwarded-For', 'Forwarded']) expect((await call('/metrics', { headers: { [name]: 'for=192.0.2.1' } })).status).toBe(404);
  });

  test('holds no id and no secret', async () => {
    const { exchange } = own;
    const session = await exchange.signIn();
    const agent = await exchange.makeAgent(session);
    const made = await exchange.upload('x', { authMode: 'agent', allowedAgentIds: [agent.agentId] }, session);
    const grant = await exchange.grant(made.shareId, agent.key);
    await exchange.must(`/api/dl/${made.id}`, { headers: { 'X-Access-Grant': grant } });
    await exchange.call(`/api/dl/${grant}/${session}`);
    const all = (await Promise.all(names.map(scrape))).join('\n');
    for (const secret of [session, agent.key, agent.agentId, grant, made.id, made.shareId, made.deleteToken]) expect(all).not.toContain(secret);
  });
});
