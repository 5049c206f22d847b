/** Messages of the event stream: a CloudEvent that holds a domain event, and the service that waits for its confirmation. */
import { z } from 'zod';
import { serviceNames, type ServiceName } from '../../../shared/contract.ts';
import { auditEvent } from '../../../shared/contracts/audit.ts';

export type RecordedEvent = z.output<typeof auditEvent>;

const cloudEvent = z.object({
  specversion: z.literal('1.0'),
  id: z.uuid(),
  source: z.string(),
  data: auditEvent,
}).refine((message) => message.id === message.data.id, 'the envelope must have the id of its event');

export interface EventMessage {
  readonly event: RecordedEvent;
  /** Absent when the source keeps no outbox: then nobody waits. */
  readonly service: ServiceName | undefined;
}

/** Reads a message. Answers why not, when it is no event. */
export function readMessage(text: string): EventMessage | { readonly problem: string } {
  const parsed = cloudEvent.safeParse(parseJson(text));
  if (!parsed.success) return { problem: parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('; ') };
  const service = serviceNames.find((name) => parsed.data.source === `/services/${name}`);
  return { event: parsed.data.data, service };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
