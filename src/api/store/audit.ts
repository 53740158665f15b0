import type { Db } from './database.ts';
import type { Place } from './template-list.ts';

export type AuditRecord = {
  entryId: string;
  atUs: number;
  operation: string;
  target: string;
  actorKind: 'apiKey' | 'user' | 'admin' | 'local' | 'none';
  actorId: string | null;
  teamId: string | null;
  address: string;
  status: number;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
};

/** Writes an entry down; one that is there already, as the answer to its first try was lost, stays as it is. */
export async function insertAudit(db: Db, entry: AuditRecord): Promise<void> {
  await db
    .insertInto('audit_log')
    .values({
      entry_id: entry.entryId,
      at_us: entry.atUs,
      operation: entry.operation,
      target: entry.target,
      actor_kind: entry.actorKind,
      actor_id: entry.actorId,
      team_id: entry.teamId,
      address: entry.address,
      status: entry.status,
      before_json: entry.before && JSON.stringify(entry.before),
      after_json: entry.after && JSON.stringify(entry.after),
    })
    .onConflict(conflict => conflict.column('entry_id').doNothing())
    .execute();
}

export type AuditFilter = { teamId?: string; operation?: string; target?: string };

/** Entries behind `after`, newest first. */
export async function listAudit(db: Db, filter: AuditFilter, page: { after?: Place; limit: number }): Promise<AuditRecord[]> {
  let query = db.selectFrom('audit_log').selectAll();
  if (filter.teamId !== undefined) query = query.where('team_id', '=', filter.teamId);
  if (filter.operation !== undefined) query = query.where('operation', '=', filter.operation);
  if (filter.target !== undefined) query = query.where('target', '=', filter.target);
  const { after } = page;
  if (after) {
    query = query.where(where =>
      where.or([where('at_us', '<', after.atUs), where.and([where('at_us', '=', after.atUs), where('entry_id', '<', after.id)])]),
    );
  }
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

/** Forgets what is older than `beforeUs`. */
export async function pruneAudit(db: Db, beforeUs: number): Promise<void> {
  await db.deleteFrom('audit_log').where('at_us', '<', beforeUs).execute();
}

const parseOrNull = (json: string | null) => (json === null ? null : (JSON.parse(json) as Record<string, unknown>));
