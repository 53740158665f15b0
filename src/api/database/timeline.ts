import { sql } from 'kysely';
import { microsPerSecond } from '../../base/clock.ts';
import { inTransaction, kindOf } from './db.ts';
import type { Db } from './db.ts';
import type { Timeline } from './postgres/primary.ts';
import { prepared } from './prepared.ts';

/**
 * How long after the database went over to another server, or came from a backup, nothing is concluded from what it
 * lacks: changes that were answered may be missing. Seconds.
 */
const quarantineSeconds = 24 * 3600;
const place = 1;

/** What is known of the database's history. */
type TimelineState = {
  timeline: Timeline;
  /** It differs from the one at the last check. */
  isNew: boolean;
  /** It changed a short while ago: what the database lacks may exist all the same. */
  isSuspect: boolean;
};

/**
 * Compares the database's history with the one that its state was last used in, and records it. Null on SQLite, which
 * has no servers.
 */
export async function noticeTimeline(db: Db, nowUs: number): Promise<TimelineState | null> {
  if (kindOf(db) !== 'postgres') return null;
  return inTransaction(db, async db => {
    const timeline = await currentTimeline(db);
    const own = { system_id: timeline.systemId, timeline: timeline.timeline };
    const before = await db.selectFrom('database_timeline').selectAll().forUpdate().executeTakeFirst();
    if (!before) {
      const first = { place, ...own, changed_at_us: null };
      await db
        .insertInto('database_timeline')
        .values(first)
        .onConflict(conflict => conflict.doNothing())
        .execute();
      return { timeline, isNew: false, isSuspect: false };
    }
    const isNew = before.system_id !== own.system_id || Number(before.timeline) !== own.timeline;
    if (isNew)
      await db
        .updateTable('database_timeline')
        .set({ ...own, changed_at_us: nowUs })
        .execute();
    const changedAtUs = isNew ? nowUs : before.changed_at_us;
    return { timeline, isNew, isSuspect: changedAtUs !== null && nowUs - changedAtUs < quarantineUs };
  });
}

const quarantineUs = quarantineSeconds * microsPerSecond;

/** Whether the database went over to another server a short while ago, as far as any process has noticed. */
export async function isSuspect(db: Db, nowUs: number): Promise<boolean> {
  const [row] = await changed(db, {});
  return row !== undefined && row.changed_at_us !== null && nowUs - row.changed_at_us < quarantineUs;
}

const changed = prepared<object, { changed_at_us: number | null }>(db =>
  db.selectFrom('database_timeline').select('changed_at_us'),
);

async function currentTimeline(db: Db): Promise<Timeline> {
  const { rows } = await sql<{ systemId: string; timeline: number }>`
    select system_identifier::text as "systemId",
      ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int as timeline
    from pg_control_system()
  `.execute(db);
  const [found] = rows;
  if (!found) throw new Error('invariant broken: a database does not say what it is');
  return found;
}
