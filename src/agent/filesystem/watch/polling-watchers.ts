import { AtollError } from '../../../base/error.ts';
import { randomName } from '../../../base/id.ts';
import { openFeed, type EventFeed, type FilesystemEvent, type WatchSources } from './event-feed.ts';
import type { WatchTarget } from './watch-target.ts';

/** Watchers at the same time; whoever forgets to remove them must not fill the memory. */
export const pollingWatchersMax = 1000;
/** Events that wait for a poll. Beyond, the next polls tell by a look at what changed. */
export const waitingEventsMax = 100_000;

type Watcher = { feed: EventFeed; events: FilesystemEvent[]; error: AtollError | undefined };

/** Watchers for clients that ask from time to time. They live until they are removed. */
export class PollingWatchers {
  #watchers = new Map<string, Watcher>();

  async create(sources: WatchSources, target: WatchTarget): Promise<string> {
    if (this.#watchers.size >= pollingWatchersMax) throw new AtollError('rate_limited', `there are ${pollingWatchersMax} watchers already: remove some`);
    const events: FilesystemEvent[] = [];
    const watcher: Watcher = { feed: { catchUp() {}, close() {} }, events, error: undefined };
    watcher.feed = await openFeed(sources, target, {
      give: event => void watcher.events.push(event),
      hasRoom: () => watcher.events.length < waitingEventsMax,
      fail: error => (watcher.error = error),
    });
    const id = `w${randomName(20)}`;
    this.#watchers.set(id, watcher);
    return id;
  }

  /** Everything since the last call. */
  take(id: string): FilesystemEvent[] {
    const watcher = this.#find(id);
    const { events } = watcher;
    // What failed is told after what came before it.
    if (events.length === 0 && watcher.error) throw watcher.error;
    watcher.events = [];
    watcher.feed.catchUp();
    return events;
  }

  remove(id: string): void {
    this.#find(id).feed.close();
    this.#watchers.delete(id);
  }

  #find(id: string): Watcher {
    const watcher = this.#watchers.get(id);
    if (!watcher) throw new AtollError('not_found', `watcher '${id}' not found`);
    return watcher;
  }
}
