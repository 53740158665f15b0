import { SandboxPause } from '../../protocol/api/lifecycle.ts';
import { pauseSandbox } from '../app/sandbox-pause.ts';
import { route } from './route.ts';
import { sandboxParams } from './sandbox-read.ts';

export const pauseSandboxRoute = route({
  operationId: 'pauseSandbox',
  method: 'POST',
  path: '/sandboxes/{sandboxID}/pause',
  summary: 'Keep a sandbox and free what it uses',
  auth: 'team',
  params: sandboxParams,
  body: SandboxPause,
  bodyOptional: true,
  responses: { 204: { description: 'It is paused, and stays so over crashes' } },
  errors: [404, 409, 503, 507],
  async handle(app, { caller, params, body, note }) {
    note({ target: `sandbox:${params.sandboxID}` });
    const { kept } = await pauseSandbox(app, caller.team, params.sandboxID, body.memory ?? true);
    note({ after: { kept } });
    return { status: 204 };
  },
});
