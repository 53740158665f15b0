import { Type } from '@sinclair/typebox';
import { NewSnapshot, SnapshotInfo } from '../../../protocol/api/lifecycle.ts';
import { int32 } from '../../../protocol/api/primitives.ts';
import { OnceHeaders } from '../../../protocol/api/sandbox.ts';
import { once, type OnceDeps } from '../../repeat/rules/once.ts';
import { snapshotSandbox } from '../workflows/take.ts';
import { listSnapshotsOf, snapshotPageMax } from '../rules/list.ts';
import type { SnapshotName } from '../rules/list.ts';
import { route } from '../../http/route.ts';
import { sandboxParams } from '../../sandbox/http/read.ts';
import type { Db } from '../../database/db.ts';
import type { SnapshotDeps } from '../workflows/take.ts';

/** `POST /sandboxes/{sandboxID}/snapshots` */
export const createSnapshotRoute = route({
  operationId: 'createSnapshot',
  method: 'POST',
  path: '/sandboxes/{sandboxID}/snapshots',
  summary: 'Create a snapshot of a running sandbox',
  auth: 'team',
  params: sandboxParams,
  body: NewSnapshot,
  bodyOptional: true,
  headers: OnceHeaders,
  responses: {
    201: { description: 'Sandboxes can be made from it, also when this one is gone', schema: SnapshotInfo },
  },
  errors: [404, 409, 507],
  async handle(deps: SnapshotDeps & OnceDeps, { caller: { team }, params: { sandboxID }, headers, body, audit }) {
    audit({ target: `sandbox:${sandboxID}` });
    const asked = { sandboxID, body };
    const request = { teamId: team.teamId, operation: 'createSnapshot', key: headers['idempotency-key'], asked };
    const snapshot = await once(deps, request, async () =>
      snapshotView(await snapshotSandbox(deps, team, sandboxID, body)),
    );
    audit({ after: { snapshotID: snapshot.snapshotID } });
    return { status: 201, body: snapshot };
  },
});

/** `GET /snapshots` */
export const listSnapshotsRoute = route({
  operationId: 'listSnapshots',
  method: 'GET',
  path: '/snapshots',
  summary: 'List snapshots of the team, newest first, page by page',
  auth: 'team',
  long: true,
  query: Type.Object({
    sandboxID: Type.Optional(Type.String({ description: 'Only those of this sandbox, which may be gone' })),
    name: Type.Optional(Type.String({ description: 'Name or ID, with or without tag' })),
    limit: Type.Optional(int32({ minimum: 1, maximum: snapshotPageMax, default: snapshotPageMax })),
    nextToken: Type.Optional(Type.String()),
  }),
  responses: {
    200: {
      description: 'A page of snapshots',
      schema: Type.Array(SnapshotInfo),
      headers: { 'X-Next-Token': 'Token of the next page, when there is one' },
    },
  },
  async handle({ db }: { db: Db }, { caller, query }) {
    const { sandboxID, ...page } = query;
    const { items, nextToken } = await listSnapshotsOf(db, caller.team, {
      ...page,
      ...(sandboxID !== undefined && { sandboxId: sandboxID }),
    });
    return {
      status: 200,
      body: items.map(snapshotView),
      headers: { ...(nextToken !== null && { 'X-Next-Token': nextToken }) },
    };
  },
});

function snapshotView({ templateId, tag, names }: SnapshotName): SnapshotInfo {
  return { snapshotID: `${names[0] ?? templateId}:${tag}`, names };
}
