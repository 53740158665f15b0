import { JsonText } from '../../../base/json-text.ts';
import { eventBounds } from '../../../protocol/api/event.ts';
import type { LifecycleEvent } from '../../../protocol/api/event.ts';
import { listEvents, pruneEvents } from '../store/list.ts';
import type { EventFilter } from '../store/list.ts';
import { microsPerSecond } from '../../../base/clock.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Db } from '../../database/db.ts';

/** How often this runs, milliseconds. */
export const eventsPruneIntervalMs = 10 * 60_000;

/** Events of a team as a list in JSON, built from the JSON of each in the database; newest first by default. */
export async function eventsOf(
  db: Db,
  team: TeamRecord,
  filter: EventFilter,
  page: { offset?: number; limit?: number; orderAsc?: boolean },
): Promise<JsonText<LifecycleEvent[]>> {
  const { offset = 0, limit = eventBounds.pageDefault, orderAsc = false } = page;
  return new JsonText(await listEvents(db, team.teamId, filter, { offset, limit, oldestFirst: orderAsc }));
}

/** Removes events that are too old, or too many. */
export async function reconcileEvents({ clock, db }: { clock: Clock; db: Db }): Promise<void> {
  await pruneEvents(db, clock() - eventBounds.keptDays * 24 * 3600 * microsPerSecond);
}
