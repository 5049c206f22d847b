/** Times as JSON has them, where a statement makes the JSON. */
import type { Sql } from '../../../shared/db.ts';

/** `2026-01-31T12:00:00.000Z` of a column. */
export const isoTime = (sql: Sql, column: string) => sql`to_char(${sql(column)} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
