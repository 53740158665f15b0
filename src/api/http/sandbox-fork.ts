import { Type } from '@sinclair/typebox';
import { SandboxFork, SandboxForkResult } from '../../protocol/api/lifecycle.ts';
import { defaultTimeoutSeconds } from '../../protocol/api/sandbox.ts';
import type { App } from '../app/context.ts';
import { forkSandbox } from '../app/sandbox-fork.ts';
import type { ForkResult } from '../app/sandbox-fork.ts';
import { apiError } from './error.ts';
import { route } from './route.ts';
import { sandboxParams } from './sandbox-read.ts';
import { sandboxView } from './sandbox-view.ts';

export const forkSandboxRoute = route({
  operationId: 'forkSandbox',
  method: 'POST',
  path: '/sandboxes/{sandboxID}/fork',
  summary: 'Make sandboxes that begin as a running one is now',
  auth: 'team',
  params: sandboxParams,
  body: SandboxFork,
  bodyOptional: true,
  responses: { 201: { description: 'What became of each fork', schema: Type.Array(SandboxForkResult) } },
  errors: [404, 409, 503, 507],
  async handle(app, { caller, params, body, note, signal }) {
    note({ target: `sandbox:${params.sandboxID}` });
    const { timeout: seconds = defaultTimeoutSeconds.v1, count = 1 } = body;
    const results = await forkSandbox(app, caller.team, params.sandboxID, { seconds, count }, signal);
    note({ after: { forks: results.flatMap(result => ('sandbox' in result ? result.sandbox.sandboxId : [])) } });
    return { status: 201, body: results.map(result => resultView(app, result)) };
  },
});

function resultView(app: App, result: ForkResult): SandboxForkResult {
  return 'sandbox' in result ? { sandbox: sandboxView(app, result.sandbox) } : { error: apiError(result.error) };
}
