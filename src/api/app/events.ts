import { eventBounds } from '../../protocol/api/event.ts';
import type { LifecycleEvent } from '../../protocol/api/event.ts';
import { listEvents, pruneEvents } from '../store/event-list.ts';
import type { EventFilter } from '../store/event-list.ts';
import type { TeamRecord } from '../store/team.ts';
import { microsPerSecond } from './clock.ts';
import type { App } from './context.ts';

export const eventsPruneIntervalMs = 3_600_000;

/** Events of a team, newest first unless asked otherwise. */
export async function eventsOf(
  app: App,
  team: TeamRecord,
  filter: EventFilter,
  page: { offset?: number; limit?: number; orderAsc?: boolean },
): Promise<LifecycleEvent[]> {
  const { offset = 0, limit = eventBounds.pageDefault, orderAsc = false } = page;
  const bodies = await listEvents(app.store.db, team.teamId, filter, { offset, limit, oldestFirst: orderAsc });
  return bodies.map(body => JSON.parse(body) as LifecycleEvent);
}

/** Forgets events that are old, or too many. */
export async function reconcileEvents(app: App): Promise<void> {
  await pruneEvents(app.store.db, app.clock() - eventBounds.keptDays * 24 * 3600 * microsPerSecond);
}
