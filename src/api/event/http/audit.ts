import { Type } from '@sinclair/typebox';
import { AuditEntry } from '../../../protocol/api/audit.ts';
import { int32 } from '../../../protocol/api/primitives.ts';
import { auditPageMax, readAudit } from '../rules/audit.ts';
import { formatTime } from '../../../base/time.ts';
import { route } from '../../http/route.ts';
import type { AuditRecord } from '../record.ts';
import type { Db } from '../../database/db.ts';

/** `GET /admin/audit` */
export const readAuditRoute = route({
  operationId: 'adminGetAudit',
  method: 'GET',
  path: '/admin/audit',
  summary: 'List audit log entries, newest first, page by page',
  auth: 'admin',
  query: Type.Object({
    teamID: Type.Optional(Type.String()),
    operation: Type.Optional(Type.String()),
    target: Type.Optional(Type.String()),
    limit: Type.Optional(int32({ minimum: 1, maximum: auditPageMax, default: auditPageMax })),
    nextToken: Type.Optional(Type.String()),
  }),
  responses: {
    200: {
      description: 'A page of entries',
      schema: Type.Array(AuditEntry),
      headers: { 'X-Next-Token': 'Token of the next page, when there is one' },
    },
  },
  async handle({ db }: { db: Db }, { query }) {
    const { teamID, operation, target, ...page } = query;
    const filter = {
      ...(teamID !== undefined && { teamId: teamID }),
      ...(operation !== undefined && { operation }),
      ...(target !== undefined && { target }),
    };
    const { items, nextToken } = await readAudit(db, filter, page);
    return {
      status: 200,
      body: items.map(entryView),
      headers: { ...(nextToken !== null && { 'X-Next-Token': nextToken }) },
    };
  },
});

/** `GET /audit` */
export const readTeamAuditRoute = route({
  operationId: 'getAudit',
  method: 'GET',
  path: '/audit',
  summary: 'List who changed what of the team, newest first, page by page',
  auth: 'memberOrAdmin',
  role: 'admin',
  query: Type.Object({
    operation: Type.Optional(Type.String()),
    target: Type.Optional(Type.String()),
    limit: Type.Optional(int32({ minimum: 1, maximum: auditPageMax, default: auditPageMax })),
    nextToken: Type.Optional(Type.String()),
  }),
  responses: {
    200: {
      description: 'A page of entries',
      schema: Type.Array(AuditEntry),
      headers: { 'X-Next-Token': 'Token of the next page, when there is one' },
    },
  },
  async handle({ db }: { db: Db }, { caller, query }) {
    const { operation, target, ...page } = query;
    const filter = {
      teamId: caller.team.teamId,
      ...(operation !== undefined && { operation }),
      ...(target !== undefined && { target }),
    };
    const { items, nextToken } = await readAudit(db, filter, page);
    return {
      status: 200,
      body: items.map(entryView),
      headers: { ...(nextToken !== null && { 'X-Next-Token': nextToken }) },
    };
  },
});

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
