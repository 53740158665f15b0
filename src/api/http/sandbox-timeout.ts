import { SandboxRefresh, SandboxTimeout, defaultTimeoutSeconds } from '../../protocol/api/sandbox.ts';
import type { Change } from '../app/audit.ts';
import { formatTime } from '../../base/time.ts';
import { refreshSandbox, setTimeoutOf } from '../app/sandbox-timeout.ts';
import type { SandboxRecord } from '../store/sandbox-row.ts';
import { route } from './route.ts';
import { sandboxParams } from './sandbox-read.ts';

export const setSandboxTimeout = route({
  operationId: 'setSandboxTimeout',
  method: 'POST',
  path: '/sandboxes/{sandboxID}/timeout',
  summary: 'Let a sandbox expire so many seconds from now',
  auth: 'team',
  params: sandboxParams,
  body: SandboxTimeout,
  responses: { 204: { description: 'Set' } },
  errors: [404, 409],
  async handle(app, { caller, params, body, note }) {
    const { before, after } = await setTimeoutOf(app, caller.team, params.sandboxID, body.timeout);
    note(endChange(before, after));
    return { status: 204 };
  },
});

export const refreshSandboxRoute = route({
  operationId: 'refreshSandbox',
  method: 'POST',
  path: '/sandboxes/{sandboxID}/refreshes',
  summary: 'Keep a sandbox alive for at least so many seconds from now',
  auth: 'team',
  params: sandboxParams,
  body: SandboxRefresh,
  bodyOptional: true,
  responses: { 204: { description: 'Extended, or long enough already' } },
  errors: [404, 409],
  async handle(app, { caller, params, body, note }) {
    const seconds = Math.max(body.duration ?? 0, defaultTimeoutSeconds.v1);
    const { before, after } = await refreshSandbox(app, caller.team, params.sandboxID, seconds);
    note(endChange(before, after));
    return { status: 204 };
  },
});

/** For the audit log: when a sandbox was to end before, and is now. */
export function endChange(before: SandboxRecord, after: SandboxRecord): Change {
  return {
    target: `sandbox:${after.sandboxId}`,
    before: { endAt: formatTime(before.endAtUs) },
    after: { endAt: formatTime(after.endAtUs) },
  };
}
