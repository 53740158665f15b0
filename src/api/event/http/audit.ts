import { Type } from '@sinclair/typebox';
import { AuditEntry } from '../../../protocol/api/audit.ts';
import { int32 } from '../../../protocol/api/primitives.ts';
import { auditPageMax, readAudit } from '../rules/audit.ts';
import { formatTime } from '../../../base/time.ts';
import { route } from '../../http/route.ts';
import type { AuditRecord } from '../record.ts';
import type { Db } from '../../database/db.ts';

const pageQuery = {
  operation: Type.Optional(Type.String()),
  target: Type.Optional(Type.String()),
  actor: Type.Optional(Type.String({ description: 'ID of who changed it: an API key or a user' })),
  limit: Type.Optional(int32({ minimum: 1, maximum: auditPageMax, default: auditPageMax })),
  nextToken: Type.Optional(Type.String()),
};
const responses = {
  200: {
    description: 'A page of entries',
    schema: Type.Array(AuditEntry),
    headers: { 'X-Next-Token': 'Token of the next page, when there is one' },
  },
} as const;

/** `GET /admin/audit` */
export const readAuditRoute = route({
  operationId: 'adminGetAudit',
  method: 'GET',
  path: '/admin/audit',
  summary: 'List audit log entries, newest first, page by page',
  auth: 'admin',
  long: true,
  query: Type.Object({ teamID: Type.Optional(Type.String()), ...pageQuery }),
  responses,
  handle: ({ db }: { db: Db }, { query: { teamID, ...query } }) => pageOf(db, query, teamID),
});

/** `GET /audit` */
export const readTeamAuditRoute = route({
  operationId: 'getAudit',
  method: 'GET',
  path: '/audit',
  summary: 'List who changed what of the team, newest first, page by page',
  auth: 'memberOrAdmin',
  long: true,
  role: 'admin',
  query: Type.Object(pageQuery),
  responses,
  handle: ({ db }: { db: Db }, { caller, query }) => pageOf(db, query, caller.team.teamId),
});

type PageQuery = { operation?: string; target?: string; actor?: string; limit?: number; nextToken?: string };

/** A page of a team's entries; of all entries where no team is named. */
async function pageOf(db: Db, { operation, target, actor, ...page }: PageQuery, teamId: string | undefined) {
  const filter = {
    ...(teamId !== undefined && { teamId }),
    ...(operation !== undefined && { operation }),
    ...(target !== undefined && { target }),
    ...(actor !== undefined && { actor }),
  };
  const { items, nextToken } = await readAudit(db, filter, page);
  const headers = { ...(nextToken !== null && { 'X-Next-Token': nextToken }) };
  return { status: 200 as const, body: items.map(entryView), headers };
}

function entryView(entry: AuditRecord): AuditEntry {
  return {
    id: entry.entryId,
    timestamp: formatTime(entry.atUs),
    operation: entry.operation,
    target: entry.target,
    actor: { kind: entry.actorKind, id: entry.actorId },
    teamID: entry.teamId,
    address: entry.address,
    status: entry.status,
    before: entry.before,
    after: entry.after,
  };
}
