import { Type } from '@sinclair/typebox';
import { NodeDrain, NodeDrainQuery, NodeDrainStart } from '../../../protocol/api/drain.ts';
import { route } from '../../http/route.ts';
import { beginDrain, type Drain, type DrainDeps, readDrain } from '../rules/drain.ts';

const nodeParams = Type.Object({ nodeID: Type.String() });

/** `GET /admin/nodes/{nodeID}/drain` */
export const readDrainRoute = route({
  operationId: 'adminReadDrain',
  method: 'GET',
  path: '/admin/nodes/{nodeID}/drain',
  summary: 'Read what keeps a machine from being empty, and what of it can not be paused or moved',
  auth: 'admin',
  params: nodeParams,
  query: NodeDrainQuery,
  responses: { 200: { description: 'Its sandboxes', schema: NodeDrain } },
  errors: [404],
  async handle(deps: DrainDeps, { params, query }) {
    return { status: 200, body: drainView(await readDrain(deps, params.nodeID, query.mode)) };
  },
});

/** `POST /admin/nodes/{nodeID}/drain` */
export const beginDrainRoute = route({
  operationId: 'adminBeginDrain',
  method: 'POST',
  path: '/admin/nodes/{nodeID}/drain',
  summary: 'Begin to empty a machine; setting its status to ready ends that',
  auth: 'admin',
  params: nodeParams,
  body: NodeDrainStart,
  responses: { 200: { description: 'What it has now', schema: NodeDrain } },
  errors: [404],
  async handle(deps: DrainDeps, { params, body, audit }) {
    audit({ target: `node:${params.nodeID}`, after: { drain: body.mode } });
    return { status: 200, body: drainView(await beginDrain(deps, params.nodeID, body.mode)) };
  },
});

function drainView({ nodeId, mode, remaining, volumes, kept }: Drain): NodeDrain {
  return {
    nodeID: nodeId,
    mode,
    sandboxes: remaining.map(({ sandbox: { sandboxId, teamId, templateId }, reason }) => ({
      sandboxID: sandboxId,
      teamID: teamId,
      templateID: templateId,
      ...(reason !== null && { reason }),
    })),
    volumes: volumes.map(({ volume: { volumeId, teamId, name }, reason }) => ({
      volumeID: volumeId,
      teamID: teamId,
      name,
      ...(reason !== null && { reason }),
    })),
    kept,
  };
}
