import { sql } from 'kysely';
import type { RawBuilder, SqlBool } from 'kysely';
import { AtollError } from '../../base/error.ts';
import { formatTime } from '../../base/time.ts';
import { parseTime } from '../../base/clock.ts';

/**
 * Where the next page of a list begins: after the entry with this time and ID, in the order (time, ID), newest first.
 */
export type Cursor = { atUs: number; id: string };

/**
 * The rows after a cursor, newest first. As one comparison, an index over both columns finds the place; as two, the
 * database would read every row before it.
 */
export function behind(cursor: Cursor, timeColumn: string, idColumn: string): RawBuilder<SqlBool> {
  return sql<SqlBool>`(${sql.ref(timeColumn)}, ${sql.ref(idColumn)}) < (${cursor.atUs}, ${cursor.id})`;
}

/** The place of a page's last item, newest first; clients treat it as opaque. */
function formatCursor(place: Cursor): string {
  return Buffer.from(`${formatTime(place.atUs)}__${place.id}`).toString('base64url');
}

/** Reads a token of `formatCursor`; `field` names it in the error. Throws `invalid`. */
export function parseCursor(token: string, field = 'nextToken'): Cursor {
  const [time = '', id = '', ...rest] = Buffer.from(token, 'base64url').toString().split('__');
  const atUs = parseTime(time);
  if (atUs === null || !Number.isSafeInteger(atUs) || !/^[a-z0-9_-]+$/.test(id) || rest.length > 0) {
    throw new AtollError('invalid', `${field}: is not a token that a page gave`);
  }
  return { atUs, id };
}

/** Cuts `limit + 1` requested items to a page, with the token of the next one. */
export function pageOf<T>(
  found: T[],
  limit: number,
  cursorOf: (item: T) => Cursor,
): { items: T[]; nextToken: string | null } {
  const items = found.slice(0, limit);
  const last = items.at(-1);
  return { items, nextToken: found.length > limit && last !== undefined ? formatCursor(cursorOf(last)) : null };
}
