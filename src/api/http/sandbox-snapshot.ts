import { Type } from '@sinclair/typebox';
import { NewSnapshot, SnapshotInfo } from '../../protocol/api/lifecycle.ts';
import { int32 } from '../../protocol/api/primitives.ts';
import { snapshotSandbox } from '../app/sandbox-snapshot.ts';
import { listSnapshotsOf, snapshotPageMax } from '../app/snapshot-list.ts';
import type { SnapshotName } from '../app/snapshot-list.ts';
import { route } from './route.ts';
import { sandboxParams } from './sandbox-read.ts';

export const createSnapshotRoute = route({
  operationId: 'createSnapshot',
  method: 'POST',
  path: '/sandboxes/{sandboxID}/snapshots',
  summary: 'Make a template from a running sandbox as it is now',
  auth: 'team',
  params: sandboxParams,
  body: NewSnapshot,
  bodyOptional: true,
  responses: { 201: { description: 'Sandboxes can be made from it, also when this one is gone', schema: SnapshotInfo } },
  errors: [404, 409, 503, 507],
  async handle(app, { caller, params, body, note }) {
    note({ target: `sandbox:${params.sandboxID}` });
    const snapshot = snapshotView(await snapshotSandbox(app, caller.team, params.sandboxID, body.name));
    note({ after: { snapshotID: snapshot.snapshotID } });
    return { status: 201, body: snapshot };
  },
});

export const listSnapshotsRoute = route({
  operationId: 'listSnapshots',
  method: 'GET',
  path: '/snapshots',
  summary: 'Snapshots of the team, newest first, page by page',
  auth: 'team',
  query: Type.Object({
    sandboxID: Type.Optional(Type.String({ description: 'Only those of this sandbox, which may be gone' })),
    name: Type.Optional(Type.String({ description: 'Name or ID, with or without tag' })),
    limit: Type.Optional(int32({ minimum: 1, maximum: snapshotPageMax, default: snapshotPageMax })),
    nextToken: Type.Optional(Type.String()),
  }),
  responses: {
    200: { description: 'A page of snapshots', schema: Type.Array(SnapshotInfo), headers: { 'X-Next-Token': 'Token of the next page, when there is one' } },
  },
  async handle(app, { caller, query }) {
    const { items, nextToken } = await listSnapshotsOf(app, caller.team, query);
    return { status: 200, body: items.map(snapshotView), headers: { ...(nextToken !== null && { 'X-Next-Token': nextToken }) } };
  },
});

function snapshotView({ templateId, tag, names }: SnapshotName): SnapshotInfo {
  return { snapshotID: `${names[0] ?? templateId}:${tag}`, names };
}
