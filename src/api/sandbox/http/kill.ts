import { killSandbox } from '../workflows/kill.ts';
import { route } from '../../http/route.ts';
import { sandboxParams } from './read.ts';
import type { SandboxWork } from '../workflows/run.ts';

/** `DELETE /sandboxes/{sandboxID}` */
export const deleteSandbox = route({
  operationId: 'deleteSandbox',
  method: 'DELETE',
  path: '/sandboxes/{sandboxID}',
  summary: 'Kill a sandbox, running or paused',
  auth: 'team',
  params: sandboxParams,
  responses: { 204: { description: 'Nothing of the sandbox is left' } },
  errors: [404, 409],
  async handle(deps: SandboxWork, { caller, params, audit }) {
    audit({ target: `sandbox:${params.sandboxID}` });
    await killSandbox(deps, caller.team, params.sandboxID);
    return { status: 204 };
  },
});
