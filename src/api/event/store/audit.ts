import type { Db } from '../../database/db.ts';
import { prepared } from '../../database/prepared.ts';
import { behind } from '../../database/cursor.ts';
import type { Cursor } from '../../database/cursor.ts';
import type { AuditRecord } from '../record.ts';

/** Writes an entry. One that is there already, because the answer to the first attempt was lost, stays unchanged. */
export async function insertAudit(db: Db, entry: AuditRecord): Promise<void> {
  await insertEntry(db, {
    ...entry,
    beforeJson: entry.before && JSON.stringify(entry.before),
    afterJson: entry.after && JSON.stringify(entry.after),
  });
}

type StoredEntry = Omit<AuditRecord, 'before' | 'after'> & { beforeJson: string | null; afterJson: string | null };

const insertEntry = prepared<StoredEntry>((db, parameter) =>
  db
    .insertInto('audit_log')
    .values({
      entry_id: parameter('entryId'),
      at_us: parameter('atUs'),
      operation: parameter('operation'),
      target: parameter('target'),
      actor_kind: parameter('actorKind'),
      actor_id: parameter('actorId'),
      team_id: parameter('teamId'),
      address: parameter('address'),
      status: parameter('status'),
      before_json: parameter('beforeJson'),
      after_json: parameter('afterJson'),
    })
    .onConflict(conflict => conflict.column('entry_id').doNothing()),
);

/** Which entries to list; all conditions must match. */
export type AuditFilter = { teamId?: string; operation?: string; target?: string; actor?: string };

/** Entries after `after`, newest first. */
export async function listAudit(
  db: Db,
  filter: AuditFilter,
  page: { after?: Cursor; limit: number },
): Promise<AuditRecord[]> {
  let query = db.selectFrom('audit_log').selectAll();
  if (filter.teamId !== undefined) query = query.where('team_id', '=', filter.teamId);
  if (filter.operation !== undefined) query = query.where('operation', '=', filter.operation);
  if (filter.target !== undefined) query = query.where('target', '=', filter.target);
  if (filter.actor !== undefined) query = query.where('actor_id', '=', filter.actor);
  const { after } = page;
  if (after) query = query.where(behind(after, 'at_us', 'entry_id'));
  const rows = await query.orderBy('at_us', 'desc').orderBy('entry_id', 'desc').limit(page.limit).execute();
  return rows.map(row => ({
    entryId: row.entry_id,
    atUs: row.at_us,
    operation: row.operation,
    target: row.target,
    actorKind: row.actor_kind,
    actorId: row.actor_id,
    teamId: row.team_id,
    address: row.address,
    status: row.status,
    before: parseOrNull(row.before_json),
    after: parseOrNull(row.after_json),
  }));
}

const parseOrNull = (json: string | null) => (json === null ? null : (JSON.parse(json) as Record<string, unknown>));
