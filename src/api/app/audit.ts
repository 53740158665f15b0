import { newUuid } from '../../base/id.ts';
import { insertAudit, listAudit, pruneAudit } from '../store/audit.ts';
import type { AuditFilter, AuditRecord } from '../store/audit.ts';
import type { Actor, Caller } from './authentication.ts';
import { microsPerSecond } from './clock.ts';
import type { App } from './context.ts';
import { pageOf, parsePlace } from './page-token.ts';
import type { Db } from '../store/database.ts';
import type { Accounts } from './provision-team.ts';

/** How long entries are kept. */
export const auditDays = 90;
export const auditPruneIntervalMs = 3_600_000;
export const auditPageMax = 100;
const addressCharactersMax = 200;

/** What an operation says of its change beside what every request has. Never a secret. */
export type Change = {
  /** `kind:ID` of what was changed. */
  target?: string;
  before?: Record<string, unknown>;
  after?: Record<string, unknown>;
};

/** Writes down a change. `caller` is null for operations without credential. */
export async function recordChange(
  app: Accounts & Pick<App, 'auditBacklog'>,
  request: { operation: string; caller: Caller | null; address: string; status: number },
  change: Change,
): Promise<void> {
  const { caller } = request;
  const actor: Actor | null = caller?.actor ?? null;
  await app.auditBacklog.write(app.store.db, {
    entryId: newUuid(),
    atUs: app.clock(),
    operation: request.operation,
    target: change.target ?? '',
    actorKind: actor?.kind ?? 'none',
    actorId: actor?.id ?? null,
    teamId: caller?.kind === 'team' ? caller.team.teamId : null,
    address: request.address.slice(0, addressCharactersMax),
    status: request.status,
    before: change.before ?? null,
    after: change.after ?? null,
  });
}

/** Writes down what was done by the command line on the machine, in the transaction of the change. */
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
    // As the route would have answered.
    status: 200,
    before: change.before ?? null,
    after: change.after ?? null,
  });
}

/** A page of the audit log, newest first. Throws `invalid`. */
export async function readAudit(
  app: App,
  filter: AuditFilter,
  page: { limit?: number; nextToken?: string },
): Promise<{ items: AuditRecord[]; nextToken: string | null }> {
  const limit = page.limit ?? auditPageMax;
  const after = page.nextToken === undefined ? undefined : parsePlace(page.nextToken);
  const found = await listAudit(app.store.db, filter, { limit: limit + 1, ...(after && { after }) });
  return pageOf(found, limit, entry => ({ atUs: entry.atUs, id: entry.entryId }));
}

/** Forgets entries that are older than `auditDays`. */
export async function reconcileAudit(app: App): Promise<void> {
  await pruneAudit(app.store.db, app.clock() - auditDays * 24 * 3600 * microsPerSecond);
}
