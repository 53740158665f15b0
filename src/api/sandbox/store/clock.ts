import { sql } from 'kysely';
import { occupyingStates } from '../../../protocol/state.ts';
import type { Db } from '../../database/db.ts';

/** Moves the start and the end of every run by the same time, µs. */
export async function shiftRuns(db: Db, byUs: number): Promise<void> {
  await db
    .updateTable('sandboxes')
    .set({ started_at_us: sql<number>`started_at_us + ${byUs}`, end_at_us: sql<number>`end_at_us + ${byUs}` })
    .where('state', 'in', [...occupyingStates])
    .execute();
}
