import { Type } from '@sinclair/typebox';
import { SandboxFork, SandboxForkResult } from '../../../protocol/api/lifecycle.ts';
import { defaultTimeoutSeconds } from '../../../protocol/api/sandbox.ts';
import { forkSandbox } from '../workflows/fork.ts';
import type { ForkResult } from '../workflows/fork.ts';
import { apiError } from '../../http/error.ts';
import { route } from '../../http/route.ts';
import { sandboxParams } from './read.ts';
import { sandboxView } from './view.ts';
import type { ForkDeps } from '../workflows/fork.ts';

/** `POST /sandboxes/{sandboxID}/fork` */
export const forkSandboxRoute = route({
  operationId: 'forkSandbox',
  method: 'POST',
  path: '/sandboxes/{sandboxID}/fork',
  summary: 'Fork a running sandbox',
  auth: 'team',
  params: sandboxParams,
  body: SandboxFork,
  bodyOptional: true,
  responses: { 201: { description: 'What became of each fork', schema: Type.Array(SandboxForkResult) } },
  errors: [404, 409, 503, 507],
  async handle(deps: ForkDeps, { caller, params, body, audit, signal }) {
    audit({ target: `sandbox:${params.sandboxID}` });
    const { timeout: seconds = defaultTimeoutSeconds.v1, count = 1 } = body;
    const results = await forkSandbox(deps, caller.team, params.sandboxID, { seconds, count }, signal);
    audit({ after: { forks: results.flatMap(result => ('sandbox' in result ? result.sandbox.sandboxId : [])) } });
    return { status: 201, body: results.map(result => resultView(deps.seed, result)) };
  },
});

function resultView(seed: Uint8Array, result: ForkResult): SandboxForkResult {
  return 'sandbox' in result ? { sandbox: sandboxView(seed, result.sandbox) } : { error: apiError(result.error) };
}
