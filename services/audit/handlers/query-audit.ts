/** Answers one page of an owner's audit record (interface chapter: Audit). */
import type { Handler } from '../../../shared/contract.ts';
import type { audit } from '../../../shared/contracts/audit.ts';
import { fail } from '../../../shared/errors.ts';
import { openCursor, sealCursor } from '../domain/cursor.ts';
import { filtersOf } from '../domain/filters.ts';
import type { EventStore } from '../store/events.ts';

interface Deps {
  readonly store: Pick<EventStore, 'listEvents'>;
  readonly cursorKeys: readonly Buffer[];
}

export const queryAudit = ({ store, cursorKeys }: Deps): Handler<typeof audit.queryAudit> =>
  async function queryAudit(input, { caller }) {
    if (caller.type !== 'owner') throw fail('owner_auth_required');
    const filters = filtersOf(caller.ownerId, input);
    const after = input.cursor === undefined ? undefined : openCursor(input.cursor, filters, cursorKeys);
    if (input.cursor !== undefined && !after) throw fail('invalid_cursor');
    // One row more than the page holds tells whether there is a next page.
    const rows = await store.listEvents(filters, after, input.limit + 1);
    const page = rows.slice(0, input.limit);
    const last = page.at(-1);
    const nextCursor = rows.length > page.length && last ? sealCursor(last.position, filters, cursorKeys) : null;
    return { count: page.length, events: page.map((row) => row.event), nextCursor };
  };
