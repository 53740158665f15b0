import { systemClock } from '../../base/clock.ts';
import { connectStore } from '../database/database.ts';
import type { StoreLocation } from '../database/db.ts';
import { forgetEnded } from '../sandbox/store/ended.ts';

/** Opens the state and records that the operator ended these executions. */
export async function recordEnded(
  location: StoreLocation,
  ended: { sandboxId: string; executionId: string }[],
): Promise<void> {
  // Without migrating: an older version may be the one that goes on.
  await using store = connectStore(location);
  await forgetEnded(store.db, ended, systemClock()());
}
