import { idempotencyBounds } from '../../../protocol/api/sandbox.ts';
import { microsPerSecond } from '../../../base/clock.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Db } from '../../database/db.ts';
import { histories, pruneHistory } from '../../event/store/history.ts';

/** How often this runs, milliseconds. */
export const keysIntervalMs = 10 * 60_000;

/** Forgets the keys of creates that are old, and those beyond `perTeamMax` of a team. */
export async function reconcileKeys(
  { clock, db }: { clock: Clock; db: Db },
  perTeamMax: number = idempotencyBounds.perTeamMax,
): Promise<void> {
  await pruneHistory(db, histories.idempotencyKeys, {
    beforeUs: clock() - idempotencyBounds.keptHours * 3600 * microsPerSecond,
    perTeamMax,
  });
}
