import { AtollError } from '../../../base/error.ts';
import { randomName } from '../../../base/id.ts';
import { openFeed, type EventFeed, type FilesystemEvent, type WatchSources } from './event-feed.ts';
import type { WatchTarget } from './watch-target.ts';

/** Watchers at the same time: clients that forget to remove them must not fill the memory. */
const pollingWatchersMax = 1000;
/** Events that wait for a poll. Beyond this, the next polls report what a look at the files shows. */
const waitingEventsMax = 100_000;

/** Longest time that a poll waits for earlier events, milliseconds: a program in the sandbox can stop their source. */
const settleMsMax = 2_000;

type Watcher = { feed: EventFeed; events: FilesystemEvent[]; error: AtollError | undefined };

/** Watchers for clients that ask from time to time. They live until they are removed. */
export class PollingWatchers {
  #watchers = new Map<string, Watcher>();

  async create(sources: WatchSources, target: WatchTarget): Promise<string> {
    if (this.#watchers.size >= pollingWatchersMax)
      throw new AtollError('rate_limited', `there are ${pollingWatchersMax} watchers already: remove some`);
    const events: FilesystemEvent[] = [];
    const watcher: Watcher = { feed: { catchUp() {}, settle: async () => {}, close() {} }, events, error: undefined };
    watcher.feed = await openFeed(sources, target, {
      give: event => void watcher.events.push(event),
      hasRoom: () => watcher.events.length < waitingEventsMax,
      fail: error => (watcher.error = error),
    });
    const id = `w${randomName(20)}`;
    this.#watchers.set(id, watcher);
    return id;
  }

  /** Everything that happened since the last call. */
  async take(id: string): Promise<FilesystemEvent[]> {
    const watcher = this.#find(id);
    await atMost(watcher.feed.settle(), settleMsMax);
    const { events } = watcher;
    // A failure is reported after the events before it.
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

async function atMost(work: Promise<void>, ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  await Promise.race([work, promise]).finally(() => clearTimeout(timer));
}
