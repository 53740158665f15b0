import { AtollError } from '../../base/error.ts';
import type { SandboxRecord } from '../store/sandbox-row.ts';
import type { TeamRecord } from '../store/team.ts';
import type { App } from './context.ts';
import { sandboxFor } from './sandbox-find.ts';
import { checkTimeout, setEnd } from './sandbox-timeout.ts';

/**
 * Makes sure that a sandbox runs for at least `seconds` from now. Answers the sandbox, as it was before,
 * and whether it had to be resumed.
 * Errors: `invalid`, `not_found`, `conflict`.
 */
export async function connectSandbox(
  app: App,
  team: TeamRecord,
  sandboxId: string,
  seconds: number,
): Promise<{ before: SandboxRecord; sandbox: SandboxRecord; resumed: boolean }> {
  checkTimeout(app, team, seconds, 0);
  const before = await sandboxFor(app, team, sandboxId, 'connect');
  if (before.state !== 'running') {
    throw new AtollError('unimplemented', `Sandbox "${before.sandboxId}" is ${before.state}, and resuming is not available in this installation`);
  }
  return { before, sandbox: await setEnd(app, team, before, seconds, true), resumed: false };
}
