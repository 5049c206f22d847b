/** What the recorder takes for an event, and what it throws away. */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { eventOfService, toCloudEvent } from '../../../shared/events.ts';
import { readMessage } from './message.ts';

const event = eventOfService('policy', Date.parse('2026-03-01T12:00:00.123Z'), { eventType: 'share.created', targetType: 'share', targetId: 'shr_a' });
const message = toCloudEvent('policy', event);

describe('message', () => {
  test('an event of a service names the service to confirm to', () => {
    expect(readMessage(JSON.stringify(message))).toEqual({ event, service: 'policy' });
  });

  test('an event of a source without an outbox is recorded and confirmed to nobody', () => {
    expect(readMessage(JSON.stringify({ ...message, source: '/services/gateway' }))).toEqual({ event, service: undefined });
  });

  test('anything else has a problem', () => {
    const others = ['', 'null', '[]', '{}', '{"__proto__":1}', JSON.stringify({ ...message, specversion: '0.3' }), JSON.stringify({ ...message, id: randomUUID() }),
      JSON.stringify({ ...message, data: { ...event, outcome: 'maybe' } }), JSON.stringify({ ...message, data: { ...event, occurredAt: 'yesterday' } })];
    for (const text of others) expect(readMessage(text)).toHaveProperty('problem');
  });
});
