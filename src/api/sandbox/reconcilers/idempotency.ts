import { idempotencyBounds } from '../../../protocol/api/sandbox.ts';
import { microsPerSecond } from '../../../base/clock.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Db } from '../../database/db.ts';
import { histories, pruneHistory } from '../../event/store/history.ts';

/** How often this runs, milliseconds. */
export const keysIntervalMs = 10 * 60_000;

/** Removes old keys of creates and of other requests, and a team's keys beyond `perTeamMax`. */
export async function reconcileKeys(
  { clock, db }: { clock: Clock; db: Db },
  perTeamMax: number = idempotencyBounds.perTeamMax,
): Promise<void> {
  const beforeUs = clock() - idempotencyBounds.keptHours * 3600 * microsPerSecond;
  await pruneHistory(db, histories.idempotencyKeys, { beforeUs, perTeamMax });
  await pruneHistory(db, histories.repeatedRequests, { beforeUs, perTeamMax });
}
