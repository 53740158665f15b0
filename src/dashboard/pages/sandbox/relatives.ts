import type { LifecycleEvent } from '../../../protocol/api/event.ts';
import type { SnapshotInfo } from '../../../protocol/api/lifecycle.ts';

/** A sandbox or snapshot that came from a sandbox. `id`: what a page or a create takes; `at`: since when, if known. */
export type Relative = { kind: 'sandbox' | 'snapshot'; id: string; at: string | undefined };

type EventData = { forked_from?: string; fork_id?: string; snapshot_id?: string };

const dataOf = (event: LifecycleEvent) => (event.event_data ?? {}) as EventData;

/** The sandbox that a sandbox was forked from, according to its events. */
export function ancestorOf(events: readonly LifecycleEvent[]): string | undefined {
  return events.map(event => dataOf(event).forked_from).find(from => from !== undefined);
}

/** What came from a sandbox: forks, according to its events, the oldest first, and its remaining snapshots. */
export function childrenOf(events: readonly LifecycleEvent[], snapshots: readonly SnapshotInfo[]): Relative[] {
  const takenAt = new Map(
    events.flatMap(event => {
      const { snapshot_id: id } = dataOf(event);
      return id === undefined ? [] : [[id, event.timestamp] as const];
    }),
  );
  // An event that arrived between pages may have shifted one fork into two of them.
  const forks = new Map<string, Relative>();
  for (const event of events) {
    const { fork_id: id } = dataOf(event);
    if (id !== undefined) forks.set(id, { kind: 'sandbox', id, at: event.timestamp });
  }
  const kept = snapshots.map(({ snapshotID }): Relative => {
    const at = takenAt.get(snapshotID.split(':')[0] ?? '');
    return { kind: 'snapshot', id: snapshotID, at };
  });
  return [...kept.toReversed(), ...[...forks.values()].toReversed()];
}
