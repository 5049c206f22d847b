/** Filters: which of an owner's events a query asks for, checked and in one spelling. */
import { createHash } from 'node:crypto';
import type { InputOf } from '../../../shared/contract.ts';
import type { audit } from '../../../shared/contracts/audit.ts';
import { failField } from '../../../shared/errors.ts';

/** Times are ISO in milliseconds, the precision that events are stored with. */
export interface Filters {
  readonly ownerId: string;
  readonly eventType?: string | undefined;
  readonly agentId?: string | undefined;
  readonly targetType?: string | undefined;
  readonly targetId?: string | undefined;
  readonly shareId?: string | undefined;
  /** Inclusive. */
  readonly from?: string | undefined;
  /** Exclusive. */
  readonly to?: string | undefined;
}

const latest = Date.parse('9999-12-31T23:59:59.999Z');

/** The filters of a query. @throws invalid_request when `from` is after `to`. */
export function filtersOf(ownerId: string, input: InputOf<typeof audit.queryAudit>): Filters {
  const { eventType, agentId, targetType, targetId, shareId } = input;
  const from = input.from === undefined ? undefined : storedTime(input.from);
  const to = input.to === undefined ? undefined : storedTime(input.to);
  if (from !== undefined && to !== undefined && from > to) throw failField('from', 'must not be after to');
  return { ownerId, eventType, agentId, targetType, targetId, shareId, from, to };
}

/**
 * The first stored time that is not before the given one. A finer fraction is rounded up, so that `from` stays inclusive and
 * `to` exclusive; years that PostgreSQL has no word for, and before any event, become the nearest time it has.
 */
function storedTime(text: string): string {
  const finer = /\.\d{3}\d*[1-9]/.test(text) ? 1 : 0;
  return new Date(Math.min(Math.max(Date.parse(text) + finer, 0), latest)).toISOString();
}

/** A digest that only the same owner and the same filters have. */
export function digestOf(filters: Filters): string {
  const { ownerId, eventType, agentId, targetType, targetId, shareId, from, to } = filters;
  const spelling = JSON.stringify([ownerId, eventType, agentId, targetType, targetId, shareId, from, to]);
  return createHash('sha256').update(spelling).digest('base64url').slice(0, 22);
}
