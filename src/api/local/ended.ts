import { systemClock } from '../../base/clock.ts';
import { connectStore } from '../database/database.ts';
import type { StoreLocation } from '../database/db.ts';
import { forgetEnded } from '../sandbox/store/ended.ts';

/** Records in the state, for whose length it is opened, that the operator ended these executions. */
export async function recordEnded(
  location: StoreLocation,
  ended: { sandboxId: string; executionId: string }[],
): Promise<void> {
  // As it is: an older version may be the one that goes on.
  await using store = connectStore(location);
  await forgetEnded(store.db, ended, systemClock()());
}
