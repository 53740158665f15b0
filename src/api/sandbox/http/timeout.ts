import { SandboxRefresh, SandboxTimeout, defaultTimeoutSeconds } from '../../../protocol/api/sandbox.ts';
import { formatTime } from '../../../base/time.ts';
import { refreshSandbox, setTimeoutOf } from '../rules/timeout.ts';
import { route } from '../../http/route.ts';
import { sandboxParams } from './read.ts';
import type { Change } from '../../event/record.ts';
import type { SandboxRecord } from '../record.ts';
import type { TimeoutDeps } from '../rules/timeout.ts';

/** `POST /sandboxes/{sandboxID}/timeout` */
export const setSandboxTimeout = route({
  operationId: 'setSandboxTimeout',
  method: 'POST',
  path: '/sandboxes/{sandboxID}/timeout',
  summary: 'Set the timeout of a sandbox',
  auth: 'team',
  params: sandboxParams,
  body: SandboxTimeout,
  responses: { 204: { description: 'Set' } },
  errors: [404, 409],
  async handle(deps: TimeoutDeps, { caller, params, body, audit }) {
    const { before, after } = await setTimeoutOf(deps, caller.team, params.sandboxID, body.timeout);
    audit(endChange(before, after));
    return { status: 204 };
  },
});

/** `POST /sandboxes/{sandboxID}/refreshes` */
export const refreshSandboxRoute = route({
  operationId: 'refreshSandbox',
  method: 'POST',
  path: '/sandboxes/{sandboxID}/refreshes',
  summary: 'Extend the timeout of a sandbox',
  auth: 'team',
  params: sandboxParams,
  body: SandboxRefresh,
  bodyOptional: true,
  responses: { 204: { description: 'Extended, or long enough already' } },
  errors: [404, 409],
  async handle(deps: TimeoutDeps, { caller, params, body, audit }) {
    const seconds = Math.max(body.duration ?? 0, defaultTimeoutSeconds.v1);
    const { before, after } = await refreshSandbox(deps, caller.team, params.sandboxID, seconds);
    audit(endChange(before, after));
    return { status: 204 };
  },
});

/** For the audit log: the sandbox's end before and after. */
export function endChange(before: SandboxRecord, after: SandboxRecord): Change {
  return {
    target: `sandbox:${after.sandboxId}`,
    before: { endAt: formatTime(before.endAtUs) },
    after: { endAt: formatTime(after.endAtUs) },
  };
}
