import { AtollError } from '../../../base/error.ts';
import { volumeChanged } from '../../../protocol/volume.ts';
import { findSandboxOfAnyTeam } from '../store/read.ts';
import { findTeam } from '../../team/store/team.ts';
import type { SandboxDirectory, SandboxRoute } from '../directory/directory.ts';
import { connectSandbox } from './connect.ts';
import { sandboxMoved, sandboxNotFound } from '../rules/find.ts';
import type { ResumeDeps } from './resume/resume.ts';

/** How long a sandbox runs at least after traffic has woken it, seconds. */
const wokenSecondsMin = 300;
/** A client waits 60 s by default: one that is told to come again still has time for it. */
const moveWaitMs = 50_000;
const movePollMs = 20;

/**
 * Resumes a paused sandbox for traffic, with its memory, and answers its route; waits for a pause or a move under way;
 * concurrent requests share one resume. The edge has checked whether the request may wake it. Errors: `not_found`, also
 * for a sandbox that traffic does not wake; `conflict`, `rate_limited`, `forbidden`, `unavailable`.
 */
export async function wakeSandbox(deps: ResumeDeps, sandboxId: string): Promise<SandboxRoute> {
  const route = await whenMoved(deps.directory, sandboxId);
  if (route?.state === 'running') return route;
  if (!route?.ingress.autoResume) throw sandboxNotFound(sandboxId);
  const sandbox = await findSandboxOfAnyTeam(deps.db, sandboxId);
  const team = sandbox && (await findTeam(deps.db, { teamId: sandbox.teamId }));
  if (!sandbox || !team || sandbox.kept === 'filesystem' || sandbox.agentUnresponsive) throw sandboxNotFound(sandboxId);
  if (team.banned || team.blocked)
    throw new AtollError('forbidden', 'The sandbox can’t be resumed: its team is blocked');
  const seconds = Math.min(Math.max(sandbox.timeoutSeconds, wokenSecondsMin), deps.limitsOf(team).lifetimeHours * 3600);
  await connectSandbox(deps, team, sandboxId, { seconds, memory: true }).catch((error: unknown) => {
    throw isVolumeChanged(error) ? staysPaused(error) : error;
  });
  const woken = deps.directory.find(sandboxId);
  if (woken?.state === 'running') return woken;
  throw sandboxNotFound(sandboxId);
}

const isVolumeChanged = (error: unknown): error is AtollError =>
  error instanceof AtollError && error.detail === volumeChanged;

/** Visitors must not learn which files a sandbox has open. */
const staysPaused = (cause: AtollError) =>
  new AtollError('conflict', 'The sandbox is paused and can’t go on as it was: its owner has to resume it', { cause });

/** The route of a sandbox once its move has ended. Errors: `conflict` when that takes too long. */
async function whenMoved(directory: SandboxDirectory, sandboxId: string): Promise<SandboxRoute | undefined> {
  const deadline = performance.now() + moveWaitMs;
  for (;;) {
    const route = directory.find(sandboxId);
    if (route?.state !== 'moving') return route;
    if (performance.now() > deadline) throw sandboxMoved(sandboxId);
    await Bun.sleep(movePollMs);
  }
}
