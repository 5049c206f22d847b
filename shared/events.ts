/** Every domain event: its type in the past tense, its shape, and the CloudEvents envelope it travels in. */
import { randomUUID } from 'node:crypto';
import type { Caller, RequestContext, ServiceName } from './contract.ts';
import type { ErrorCode } from './errors.ts';

/** Event type -> what it records. The audit page of the docs is held against this table by a test. */
export const eventTypes = {
  'transfer.stored': 'The bytes of a transfer are final and its share exists',
  'transfer.fetched': 'A fetch was let through; outcome error when its use was given back',
  'transfer.deleted': 'A transfer was deleted before its expiry',
  'transfer.expired': 'A transfer reached its expiry and its bytes were released',
  'upload.initialized': 'A multipart upload or a pipe was begun',
  'upload.completed': 'A multipart upload became a transfer, or the last byte of a pipe came',
  'upload.aborted': 'A multipart upload was aborted by its sender, or the sender of a pipe was lost',
  'upload.expired': 'An unfinished multipart upload was swept',
  'share.created': 'A share was created with its policy',
  'share.resolved': 'A share was resolved',
  'share.denied': 'A resolve or fetch of a share was refused',
  'share.updated': 'The policy of a share was changed by its owner or creator',
  'share.revoked': 'A share was revoked before its expiry; its bytes stay until theirs',
  'share.exhausted': 'The last use of a share was spent',
  'share.expired': 'A share reached its expiry',
  'share.ended': 'A share ended with its transfer',
  'grant.issued': 'A one-time grant was issued to an agent',
  'grant.redeemed': 'A grant was used for a fetch',
  'grant.denied': 'A grant was refused',
  'agent_key.created': 'An agent key was made',
  'agent_key.revoked': 'An agent key was revoked',
  'agent.authenticated': 'An access token was issued for an agent key',
  'agent_group.created': 'An agent group was made',
  'agent_group.updated': 'The name or the policy defaults of an agent group changed',
  'agent_group.deleted': 'An agent group was deleted',
  'agent_group.member_added': 'An agent joined a group',
  'agent_group.member_removed': 'An agent left a group and its policy defaults',
  'standing_permission.created': 'A standing permission was recorded',
  'standing_permission.revoked': 'A standing permission was revoked',
  'policy.planned': 'A transfer plan was signed',
  'owner.created': 'An owner was made by an admin owner, or by a first sign-in at the OpenID Connect provider',
  'owner.signed_in': 'An owner signed in',
  'owner.signed_out': 'An owner signed out; data says whether everywhere, or by signing in anew',
  'owner.password_changed': 'An owner changed the password, which ended every session',
  'owner.denied': 'A sign-in or a change of password was refused',
} as const;

export type EventType = keyof typeof eventTypes;

export const targetTypes = ['file', 'pipe', 'folder', 'share', 'grant', 'agent_key', 'policy', 'agent_group', 'standing_permission'] as const;
export type TargetType = (typeof targetTypes)[number];

export const outcomes = ['allowed', 'denied', 'error'] as const;

/** A domain event. Holds no secret: ids, names of things and outcomes only. */
export interface DomainEvent {
  readonly id: string;
  readonly eventType: EventType;
  readonly occurredAt: string;
  readonly ownerId: string | null;
  readonly actor: { readonly type: 'owner' | 'agent' | 'anonymous' | 'service'; readonly id: string | null };
  readonly agentId: string | null;
  readonly targetType: TargetType | null;
  readonly targetId: string | null;
  readonly shareId: string | null;
  readonly outcome: (typeof outcomes)[number];
  readonly code?: ErrorCode;
  readonly requestId: string | null;
  readonly ip?: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** What the place that emits an event has to say; the rest comes from the request. */
export type EventFacts = Pick<DomainEvent, 'eventType' | 'targetType' | 'targetId'> &
  Partial<Pick<DomainEvent, 'ownerId' | 'agentId' | 'shareId' | 'outcome' | 'code' | 'data'>>;

function actorOf(caller: Caller): DomainEvent['actor'] {
  switch (caller.type) {
    case 'owner': return { type: 'owner', id: caller.ownerId };
    case 'agent': return { type: 'agent', id: caller.agentId };
    case 'anonymous': return { type: 'anonymous', id: null };
  }
}

/** An event that a request caused. The owner is the caller's unless the facts say otherwise. */
export function eventOf(context: RequestContext & { caller: Caller }, now: number, facts: EventFacts): DomainEvent {
  const { caller } = context;
  return {
    id: randomUUID(),
    occurredAt: new Date(now).toISOString(),
    ownerId: caller.type === 'anonymous' ? null : caller.ownerId,
    actor: actorOf(caller),
    agentId: caller.type === 'agent' ? caller.agentId : null,
    shareId: null,
    outcome: 'allowed',
    requestId: context.requestId,
    ...(context.address && { ip: context.address }),
    data: {},
    ...facts,
  };
}

/** An event that a service caused by itself, such as a sweep. */
export function eventOfService(service: ServiceName, now: number, facts: EventFacts): DomainEvent {
  return {
    id: randomUUID(),
    occurredAt: new Date(now).toISOString(),
    ownerId: null,
    actor: { type: 'service', id: service },
    agentId: null,
    shareId: null,
    outcome: 'allowed',
    requestId: null,
    data: {},
    ...facts,
  };
}

/** The stream that carries events from the outboxes to audit. */
export const eventStream = 'AEX_EVENTS';

export function eventSubject(service: ServiceName, eventType: EventType): string {
  return `aex.evt.${service}.${eventType}`;
}

/** Where audit confirms to a service which of its events are recorded. */
export function confirmSubject(service: ServiceName): string {
  return `aex.confirm.${service}`;
}

/** CloudEvents 1.0, JSON format. */
export interface CloudEvent {
  readonly specversion: '1.0';
  readonly id: string;
  readonly source: string;
  readonly type: string;
  readonly time: string;
  readonly subject?: string;
  readonly datacontenttype: 'application/json';
  readonly data: DomainEvent;
}

export function toCloudEvent(service: ServiceName, event: DomainEvent): CloudEvent {
  return {
    specversion: '1.0',
    id: event.id,
    source: `/services/${service}`,
    type: event.eventType,
    time: event.occurredAt,
    ...(event.targetId && { subject: event.targetId }),
    datacontenttype: 'application/json',
    data: event,
  };
}
