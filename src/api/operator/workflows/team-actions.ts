import { AtollError, messageOf } from '../../../base/error.ts';
import { runningCounts } from '../../sandbox/store/counts.ts';
import { sandboxesOfTeam } from '../../sandbox/store/read.ts';
import { findTeam } from '../../team/store/team.ts';
import { killSandboxWorkflow } from '../../sandbox/workflows/kill-steps.ts';
import { forEachParallel } from '../../../base/concurrency/parallel.ts';
import { markKilling } from '../../sandbox/workflows/kill.ts';
import { isUuid } from '../../../base/id.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { Db } from '../../database/db.ts';
import type { SandboxWork } from '../../sandbox/workflows/run.ts';

const killsAtOnce = 8;

/** The team that an operator names. Throws `not_found`, `invalid` for a text that is not an ID. */
export async function teamForAdmin(db: Db, teamId: string): Promise<TeamRecord> {
  if (!isUuid(teamId)) throw new AtollError('invalid', `teamID: "${teamId}" is not the ID of a team (a UUID)`);
  const team = await findTeam(db, { teamId });
  if (!team) throw new AtollError('not_found', `Team "${teamId}" was not found`);
  return team;
}

/**
 * Ends every sandbox of a team. A sandbox that could not be removed counts as failed; its removal is tried again later.
 */
export async function killAllOf(deps: SandboxWork, team: TeamRecord): Promise<{ killed: number; failed: number }> {
  const count = { killed: 0, failed: 0 };
  await forEachParallel(await sandboxesOfTeam(deps.db, team.teamId), killsAtOnce, async sandbox => {
    const marked = await markKilling(deps, sandbox);
    if (!marked) return;
    try {
      await killSandboxWorkflow(deps, marked);
      count.killed++;
    } catch (error) {
      deps.log.warn('a sandbox was cut off, but not removed yet', {
        sandboxId: marked.sandboxId,
        error: messageOf(error),
      });
      count.failed++;
    }
  });
  return count;
}

/** How many sandboxes each team has running; teams without any are left out. */
export async function countRunning(db: Db): Promise<Map<string, number>> {
  return runningCounts(db);
}
