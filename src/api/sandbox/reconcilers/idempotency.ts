import { idempotencyBounds } from '../../../protocol/api/sandbox.ts';
import { microsPerSecond } from '../../../base/clock.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Db } from '../../database/db.ts';
import { pruneKeys } from '../store/idempotency.ts';

/** How often this runs, milliseconds. */
export const keysIntervalMs = 3_600_000;

/** Forgets the keys of creates that are old. */
export async function reconcileKeys({ clock, db }: { clock: Clock; db: Db }): Promise<void> {
  await pruneKeys(db, clock() - idempotencyBounds.keptHours * 3600 * microsPerSecond);
}
