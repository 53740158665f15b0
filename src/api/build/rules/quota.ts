import { counted } from '../../../base/counted.ts';
import { AtollError } from '../../../base/error.ts';
import { buildBounds } from '../../../protocol/api/template-build.ts';
import type { Db } from '../../database/db.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { LimitsOf } from '../../team/rules/limits.ts';
import { countBuilds, countTemplates, countWaiting } from '../store/counts.ts';
import { removeOldestFailed } from '../store/retention.ts';

/** Failed builds removed to make room for a new one: few, because the caller waits for it. */
const removedForRoom = 100;

/**
 * Makes sure that a team may have one more build and, if `isNew`, one more template. `db` is a transaction that has
 * locked the team, so that two requests at once can't both take the last place. Throws `rate_limited`.
 */
export async function requireBuildPlace(db: Db, limitsOf: LimitsOf, team: TeamRecord, isNew: boolean): Promise<void> {
  const { teamId } = team;
  const { templates, builds } = limitsOf(team);
  if (isNew && (await countTemplates(db, teamId)) >= templates)
    throw new AtollError(
      'rate_limited',
      `The team has ${counted(templates, 'template')}, which is its limit (templates): delete one first`,
    );
  const { waitingMax } = buildBounds;
  if ((await countWaiting(db, teamId)) >= waitingMax)
    throw new AtollError(
      'rate_limited',
      `The team has ${waitingMax} builds that wait, which is the most (waitingMax): start some, or wait for a day`,
    );
  if ((await countBuilds(db, teamId, 'template')) < builds) return;
  if ((await removeOldestFailed(db, teamId, removedForRoom)) > 0n) return;
  throw new AtollError(
    'rate_limited',
    `The team has ${counted(builds, 'build')}, which is its limit (builds): delete a template, or tags that select ` +
      'old builds',
  );
}

/** Makes sure that a team may have one more snapshot. Throws `rate_limited`. */
export async function requireSnapshotPlace(db: Db, limitsOf: LimitsOf, team: TeamRecord): Promise<void> {
  const { snapshots } = limitsOf(team);
  if ((await countBuilds(db, team.teamId, 'snapshot')) >= snapshots)
    throw new AtollError(
      'rate_limited',
      `The team has ${counted(snapshots, 'snapshot')}, which is its limit (snapshots): delete one first`,
    );
}
