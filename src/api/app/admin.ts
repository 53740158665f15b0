import { AtollError, messageOf } from '../../base/error.ts';
import { runningCounts } from '../store/sandbox-counts.ts';
import { sandboxesOfTeam } from '../store/sandbox-read.ts';
import { findTeam } from '../store/team.ts';
import type { TeamRecord } from '../store/team.ts';
import { killSandboxWorkflow } from '../workflows/kill-sandbox.ts';
import { forEachParallel } from '../../base/parallel.ts';
import type { App } from './context.ts';
import { markKilling } from './sandbox-kill.ts';
import { isUuid } from './template-reference.ts';

const killsAtOnce = 8;

/** The team that an operator means. Throws `not_found`, `invalid` for a text that is no ID. */
export async function teamForAdmin(app: App, teamId: string): Promise<TeamRecord> {
  if (!isUuid(teamId)) throw new AtollError('invalid', `teamID: "${teamId}" is not the ID of a team (a UUID)`);
  const team = await findTeam(app.store.db, { teamId });
  if (!team) throw new AtollError('not_found', `Team "${teamId}" was not found`);
  return team;
}

/** Ends every sandbox of a team. A sandbox that could not be removed counts as failed; its removal is tried again. */
export async function killAllOf(app: App, team: TeamRecord): Promise<{ killed: number; failed: number }> {
  const count = { killed: 0, failed: 0 };
  await forEachParallel(await sandboxesOfTeam(app.store.db, team.teamId), killsAtOnce, async sandbox => {
    const marked = await markKilling(app, sandbox);
    if (!marked) return;
    try {
      await killSandboxWorkflow(app, marked);
      count.killed++;
    } catch (error) {
      app.log.warn('a sandbox was cut off, but not removed yet', { sandboxId: marked.sandboxId, error: messageOf(error) });
      count.failed++;
    }
  });
  return count;
}

/** How many sandboxes each team has running; teams without any are left out. */
export async function countRunning(app: App): Promise<Map<string, number>> {
  return runningCounts(app.store.db);
}
