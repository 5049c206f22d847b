/** OpenTelemetry: one trace from the request over NATS to the database, with nothing secret in it (interface chapter: operating). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startOwnStack, type OwnStack } from '../support/own-stack.ts';
import { startSpanCollector, type CollectedSpan, type SpanCollector } from '../support/span-collector.ts';

let collector: SpanCollector;
let own: OwnStack;

beforeAll(async () => {
  collector = await startSpanCollector();
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '100' };
  own = await startOwnStack({ gateway: env, policy: env, storage: env, audit: env });
});
afterAll(async () => {
  await own.remove();
  collector.close();
});

async function spansOf(traceId: string, isWhole: (spans: CollectedSpan[]) => boolean): Promise<CollectedSpan[]> {
  for (const end = Date.now() + 20_000; ;) {
    const spans = collector.spans.filter((span) => span.traceId === traceId);
    if (isWhole(spans) || Date.now() > end) return spans;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

describe('traces', () => {
  test('a request goes on with the trace of its caller, over NATS, to the database', async () => {
    const [traceId, callerSpan] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7'];
    const { shareId } = await own.exchange.upload('traced');
    await own.exchange.must(`/api/share/${shareId}`, { headers: { traceparent: `00-${traceId}-${callerSpan}-01` } });

    const spans = await spansOf(traceId, (found) => found.length >= 4);
    const named = (name: string, kind: number) => spans.find((span) => span.name === name && span.kind === kind);
    const [http, call, served] = [named('GET /api/share/:shareId', 2), named('policy.resolveShare', 3), named('policy.resolveShare', 2)];
    const statement = spans.find((span) => span.name === 'postgresql');
    expect([http?.service, call?.service, served?.service, statement?.service]).toEqual(['aex-gateway', 'aex-gateway', 'aex-policy', 'aex-policy']);
    expect([http?.parentSpanId, call?.parentSpanId, served?.parentSpanId, statement?.parentSpanId]).toEqual([callerSpan, http?.spanId, call?.spanId, served?.spanId]);
    expect(statement?.attributes['db.query.text']).toMatch(/from shares where id = \$1/);
    expect(http?.attributes).toMatchObject({ 'http.route': '/api/share/:shareId', 'http.response.status_code': '200' });
  });

  test('a refusal is no error of ours, and names its code', async () => {
    const traceId = 'a'.repeat(32);
    await own.exchange.call('/api/share/shr_nothing', { headers: { traceparent: `00-${traceId}-${'b'.repeat(16)}-01` } });
    const spans = await spansOf(traceId, (found) => found.length >= 4);
    expect(spans.find(({ name, kind }) => name === 'policy.resolveShare' && kind === 2)?.attributes['error.type']).toBe('share_not_found_or_expired');
  });

  test('a caller that does not want to be traced is not', async () => {
    const traceId = 'c'.repeat(32);
    await own.exchange.call('/api/share/shr_nothing', { headers: { traceparent: `00-${traceId}-${'d'.repeat(16)}-00` } });
    const later = 'e'.repeat(32);
    await own.exchange.call('/api/share/shr_nothing', { headers: { traceparent: `00-${later}-${'d'.repeat(16)}-01` } });
    expect((await spansOf(later, (found) => found.length >= 4)).length).toBeGreaterThanOrEqual(4);
    expect(collector.spans.filter((span) => span.traceId === traceId)).toEqual([]);
  });

  test('no span holds a secret, a file name or an id of anybody', async () => {
    const { exchange } = own;
    const session = await exchange.signIn();
    const agent = await exchange.makeAgent(session);
    const made = await exchange.upload('x', { filename: 'top-secret-plans.txt', authMode: 'agent', allowedAgentIds: [agent.agentId] }, session);
    const grant = await exchange.grant(made.shareId, agent.key);
    await exchange.must(`/api/dl/${made.id}`, { headers: { 'X-Access-Grant': grant, traceparent: `00-${'f'.repeat(32)}-${'1'.repeat(16)}-01` } });
    await spansOf('f'.repeat(32), (found) => found.some(({ name }) => name === 'policy.spendUse'));
    const sent = Buffer.concat(collector.bodies).toString('latin1');
    for (const secret of [session, agent.key, grant, made.deleteToken, exchange.owner.password, made.id, made.shareId, agent.agentId, 'top-secret-plans']) expect(sent).not.toContain(secret);
  });
});
