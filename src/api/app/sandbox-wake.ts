import { AtollError } from '../../base/error.ts';
import { findSandboxOfAnyTeam } from '../store/sandbox-read.ts';
import { findTeam } from '../store/team.ts';
import type { App } from './context.ts';
import { limitsOf } from './context.ts';
import type { SandboxRoute } from './directory.ts';
import { connectSandbox } from './sandbox-connect.ts';
import { sandboxNotFound } from './sandbox-find.ts';

/** How long a sandbox that traffic has woken runs at least, seconds. */
const wokenSecondsMin = 300;

/**
 * Resumes a paused sandbox for traffic, with its memory, and answers its route; a pause under way is waited for, and
 * requests at the same time share one resume. Whether the request may wake it, the edge has checked.
 * Errors: `not_found`, also for a sandbox that traffic does not wake; `conflict`, `rate_limited`, `forbidden`, `unavailable`.
 */
export async function wakeSandbox(app: App, sandboxId: string): Promise<SandboxRoute> {
  const route = app.directory.find(sandboxId);
  if (route?.state === 'running') return route;
  if (!route?.ingress.autoResume) throw sandboxNotFound(sandboxId);
  const sandbox = await findSandboxOfAnyTeam(app.store.db, sandboxId);
  const team = sandbox && (await findTeam(app.store.db, { teamId: sandbox.teamId }));
  if (!sandbox || !team || sandbox.kept === 'filesystem') throw sandboxNotFound(sandboxId);
  if (team.banned || team.blocked) throw new AtollError('forbidden', 'The sandbox can’t be resumed: its team is blocked');
  const seconds = Math.min(Math.max(sandbox.timeoutSeconds, wokenSecondsMin), limitsOf(app, team).lifetimeHours * 3600);
  await connectSandbox(app, team, sandboxId, { seconds, memory: true });
  const woken = app.directory.find(sandboxId);
  if (woken?.state === 'running') return woken;
  throw sandboxNotFound(sandboxId);
}
