import type { Clock } from '../../../base/clock.ts';
import type { Db } from '../../database/db.ts';
import { buildRetention, microsPerHour, pruneLogs } from '../rules/retention.ts';
import { neverStarted, pruneFailedBuilds, pruneSuperseded } from '../store/retention.ts';
import { failBuilds } from '../store/write.ts';
import { keepsUnknown } from './layers.ts';

/** How often this runs, milliseconds. */
export const buildRetentionIntervalMs = 10 * 60_000;
/** Builds that one round ends. */
const failedAtOnce = 500;

/**
 * Removes what builds have left behind, within the bounds of `kept`. Builds that a tag selects or a sandbox was made
 * from stay, and all of them while an operator settles which state is right.
 */
export async function reconcileBuildRetention(
  { clock, db }: { clock: Clock; db: Db },
  kept: typeof buildRetention = buildRetention,
): Promise<void> {
  const nowUs = clock();
  const waiting = await neverStarted(db, nowUs - kept.waitingHours * microsPerHour, failedAtOnce);
  const reason = { message: `It was not started within ${kept.waitingHours} hours; register it again` };
  await failBuilds(db, waiting, reason, nowUs);
  if (await keepsUnknown({ clock, db })) return;
  const failed = { beforeUs: nowUs - kept.failedDays * 24 * microsPerHour, newest: kept.failedPerTeam };
  for (const { team_id: teamId } of await db.selectFrom('teams').select('team_id').execute()) {
    await pruneFailedBuilds(db, teamId, failed);
    await pruneSuperseded(db, teamId, kept.supersededPerTemplate);
    await pruneLogs({ clock, db }, teamId, kept);
  }
}
