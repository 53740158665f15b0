import { SandboxPause } from '../../../protocol/api/lifecycle.ts';
import { pauseSandbox } from '../workflows/pause/pause.ts';
import { route } from '../../http/route.ts';
import { sandboxParams } from './read.ts';
import type { PauseDeps } from '../workflows/pause/pause.ts';

/** `POST /sandboxes/{sandboxID}/pause` */
export const pauseSandboxRoute = route({
  operationId: 'pauseSandbox',
  method: 'POST',
  path: '/sandboxes/{sandboxID}/pause',
  summary: 'Pause a sandbox',
  auth: 'team',
  params: sandboxParams,
  body: SandboxPause,
  bodyOptional: true,
  responses: {
    204: {
      description: 'It is paused, and stays so over crashes',
      headers: { 'X-Pause-Durability': '`cluster`: also over the loss of its machine; `node`: not over that' },
    },
  },
  errors: [404, 409, 507],
  async handle(deps: PauseDeps, { caller, params, body, audit }) {
    audit({ target: `sandbox:${params.sandboxID}` });
    const { memory = true, durability = null, requireHealthyGuest = false } = body;
    // Clients rely on a pause of files alone being refused where the agent does not answer.
    const options = { memory, durability, requireAgent: requireHealthyGuest || !memory };
    const paused = await pauseSandbox(deps, caller.team, params.sandboxID, options);
    audit({ after: { kept: paused.kept, durability: paused.durability } });
    return { status: 204, headers: { 'X-Pause-Durability': paused.durability ?? 'node' } };
  },
});
