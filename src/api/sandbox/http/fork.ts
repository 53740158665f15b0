import { Type } from '@sinclair/typebox';
import { SandboxFork, SandboxForkResult } from '../../../protocol/api/lifecycle.ts';
import { OnceHeaders, defaultTimeoutSeconds } from '../../../protocol/api/sandbox.ts';
import { once, type OnceDeps } from '../../repeat/rules/once.ts';
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
  headers: OnceHeaders,
  responses: { 201: { description: 'What became of each fork', schema: Type.Array(SandboxForkResult) } },
  errors: [404, 409, 507],
  async handle(deps: ForkDeps & OnceDeps, { caller: { team }, params: { sandboxID }, headers, body, audit, signal }) {
    audit({ target: `sandbox:${sandboxID}` });
    const { timeout: seconds = defaultTimeoutSeconds.v1, count = 1 } = body;
    const key = headers['idempotency-key'];
    const asked = { sandboxID, seconds, count };
    const request = { teamId: team.teamId, operation: 'forkSandbox', key, asked };
    const results = await once(deps, request, async () => {
      // A client that repeats the request finds what was begun, so it is not given up with the connection.
      const until = key === undefined ? signal : new AbortController().signal;
      const made = await forkSandbox(deps, team, sandboxID, { seconds, count }, until);
      return made.map(result => resultView(deps.seed, result));
    }).catch((error: unknown) => {
      deps.measures.notCreated(error);
      throw error;
    });
    audit({ after: { forks: results.flatMap(({ sandbox }) => sandbox?.sandboxID ?? []) } });
    return { status: 201, body: results };
  },
});

function resultView(seed: Uint8Array, result: ForkResult): SandboxForkResult {
  return 'sandbox' in result ? { sandbox: sandboxView(seed, result.sandbox) } : { error: apiError(result.error) };
}
