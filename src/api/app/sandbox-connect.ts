import { AtollError } from '../../base/error.ts';
import type { SandboxRecord } from '../store/sandbox-row.ts';
import type { TeamRecord } from '../store/team.ts';
import type { App } from './context.ts';
import { sandboxFor } from './sandbox-find.ts';
import { checkTimeout, setEnd } from './sandbox-timeout.ts';

/**
 * Makes sure that a sandbox runs for at least `seconds` from now. Answers the sandbox and whether it had to be resumed.
 * Errors: `invalid`, `not_found`, `conflict`.
 */
export async function connectSandbox(
  app: App,
  team: TeamRecord,
  sandboxId: string,
  seconds: number,
): Promise<{ sandbox: SandboxRecord; resumed: boolean }> {
  checkTimeout(app, team, seconds, 0);
  const sandbox = await sandboxFor(app, team, sandboxId, 'connect');
  if (sandbox.state !== 'running') {
    throw new AtollError('unimplemented', `Sandbox "${sandbox.sandboxId}" is ${sandbox.state}, and resuming is not available in this installation`);
  }
  return { sandbox: await setEnd(app, team, sandbox, seconds, true), resumed: false };
}
