import { newUuid } from '../../../base/id.ts';
import { insertAudit, listAudit } from '../store/audit.ts';
import type { AuditFilter } from '../store/audit.ts';
import { microsPerSecond } from '../../../base/clock.ts';
import { pageOf, parseCursor } from '../../database/cursor.ts';
import { histories, pruneHistory } from '../store/history.ts';
import type { Db } from '../../database/db.ts';
import type { AuditRecord, Change } from '../record.ts';
import type { Actor, Caller } from '../../credential/caller.ts';
import { boundedFacts } from './bounded-facts.ts';
import type { AuditBacklog } from './audit-backlog.ts';
import type { Clock } from '../../../base/clock.ts';

/** How long entries are kept. */
const auditDays = 90;
/** Entries of one team, and those of no team together; beyond that, the oldest are removed. */
const auditPerTeamMax = 100_000;
/** How often this runs, milliseconds. */
export const auditPruneIntervalMs = 10 * 60_000;
/** The most entries on a page, and the default. */
export const auditPageMax = 100;
const addressCharactersMax = 200;

/** Records a change. `caller` is null for operations without a credential. */
export async function recordChange(
  { auditBacklog, clock, db }: { auditBacklog: AuditBacklog; clock: Clock; db: Db },
  request: { operation: string; caller: Caller | null; address: string; status: number },
  change: Change,
): Promise<void> {
  const { caller } = request;
  const actor: Actor | null = caller?.actor ?? null;
  await auditBacklog.write(db, {
    entryId: newUuid(),
    atUs: clock(),
    operation: request.operation,
    target: change.target ?? '',
    actorKind: actor?.kind ?? 'none',
    actorId: actor?.id ?? null,
    teamId: caller?.kind === 'team' ? caller.team.teamId : null,
    address: request.address.slice(0, addressCharactersMax),
    status: request.status,
    before: boundedFacts(change.before),
    after: boundedFacts(change.after),
  });
}

/** Records what the command line did on the machine, in the transaction of the change. */
export async function recordLocalChange(
  db: Db,
  command: { operation: `cli.${string}`; account: string; atUs: number; teamId: string | null },
  change: Change,
): Promise<void> {
  await insertAudit(db, {
    entryId: newUuid(),
    atUs: command.atUs,
    operation: command.operation,
    target: change.target ?? '',
    actorKind: 'local',
    actorId: command.account.slice(0, addressCharactersMax),
    teamId: command.teamId,
    address: '',
    // The status that the route would have answered.
    status: 200,
    before: boundedFacts(change.before),
    after: boundedFacts(change.after),
  });
}

/** A page of the audit log, newest first. Throws `invalid`. */
export async function readAudit(
  db: Db,
  filter: AuditFilter,
  page: { limit?: number; nextToken?: string },
): Promise<{ items: AuditRecord[]; nextToken: string | null }> {
  const limit = page.limit ?? auditPageMax;
  const after = page.nextToken === undefined ? undefined : parseCursor(page.nextToken);
  const found = await listAudit(db, filter, { limit: limit + 1, ...(after && { after }) });
  return pageOf(found, limit, entry => ({ atUs: entry.atUs, id: entry.entryId }));
}

/** Removes entries that are older than `auditDays`, and a team's entries beyond `perTeamMax`. */
export async function reconcileAudit(
  { clock, db }: { clock: Clock; db: Db },
  perTeamMax: number = auditPerTeamMax,
): Promise<void> {
  await pruneHistory(db, histories.audit, { beforeUs: clock() - auditDays * 24 * 3600 * microsPerSecond, perTeamMax });
}
