import { Type } from '@sinclair/typebox';
import { formatTime } from '../../../base/time.ts';
import { StuckSandbox } from '../../../protocol/api/stuck.ts';
import { route } from '../../http/route.ts';
import { type StuckDeps, stuckSandboxes, stuckSeconds } from '../rules/stuck.ts';

/** `GET /admin/sandboxes/stuck` */
export const listStuckRoute = route({
  operationId: 'adminListStuckSandboxes',
  method: 'GET',
  path: '/admin/sandboxes/stuck',
  summary: `List sandboxes of all teams that have been between two states for over ${stuckSeconds} seconds`,
  auth: 'admin',
  responses: { 200: { description: 'The longest first', schema: Type.Array(StuckSandbox) } },
  async handle(deps: StuckDeps) {
    const stuck = await stuckSandboxes(deps);
    const body = stuck.map(({ sandboxId, teamId, nodeId, state, sinceUs }) => ({
      sandboxID: sandboxId,
      teamID: teamId,
      nodeID: nodeId,
      state,
      since: formatTime(sinceUs),
    }));
    return { status: 200, body };
  },
});
