import { killSandbox } from '../app/sandbox-kill.ts';
import { route } from './route.ts';
import { sandboxParams } from './sandbox-read.ts';

export const deleteSandbox = route({
  operationId: 'deleteSandbox',
  method: 'DELETE',
  path: '/sandboxes/{sandboxID}',
  summary: 'End a sandbox, running or paused',
  auth: 'team',
  params: sandboxParams,
  responses: { 204: { description: 'Nothing of the sandbox is left' } },
  errors: [400, 404, 409],
  async handle(app, { caller, params, note }) {
    note({ target: `sandbox:${params.sandboxID}` });
    await killSandbox(app, caller.team, params.sandboxID);
    return { status: 204 };
  },
});
