import { SandboxPause } from '../../../protocol/api/lifecycle.ts';
import { pauseSandbox } from '../workflows/pause.ts';
import { route } from '../../http/route.ts';
import { sandboxParams } from './read.ts';
import type { PauseDeps } from '../workflows/pause.ts';

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
  responses: { 204: { description: 'It is paused, and stays so over crashes' } },
  errors: [404, 409, 503, 507],
  async handle(deps: PauseDeps, { caller, params, body, note }) {
    note({ target: `sandbox:${params.sandboxID}` });
    const { kept } = await pauseSandbox(deps, caller.team, params.sandboxID, body.memory ?? true);
    note({ after: { kept } });
    return { status: 204 };
  },
});
