import type { AtollError } from '../../../base/error.ts';
import type { Native } from '../../native.ts';
import { readEntry, type EntryInfo } from '../entry-info.ts';
import type { Inotify } from './inotify.ts';
import type { EventType, TreeEvent } from './tree-event.ts';
import { TreeWatch } from './tree-watch.ts';
import type { WatchTarget } from './watch-target.ts';

/** The wire's `FilesystemEvent`. */
export type FilesystemEvent = { name: string; type: EventType; entry?: EntryInfo };

/** The receiver of events. */
type FeedTarget = {
  give(event: FilesystemEvent): void;
  /** False: there is no room for more. Then nothing is given until `catchUp` is called. */
  hasRoom(): boolean;
  fail(error: AtollError): void;
};

/** Events of one watch on their way to one reader, which may be slower than the events. */
export type EventFeed = {
  /** There is room again. */
  catchUp(): void;
  /** Resolves once everything that happened before the call was given. */
  settle(): Promise<void>;
  close(): void;
};

/** Events that wait until their entries are examined. */
const waitingMax = 10_000;

// A deleted entry can't be described.
const withEntry: EventType[] = ['EVENT_TYPE_CREATE', 'EVENT_TYPE_WRITE', 'EVENT_TYPE_CHMOD'];

/** Parts of the agent that a watch needs. */
export type WatchSources = { readonly native: Native; readonly inotify: Inotify };

/** Watches `watched` and gives its events to `target`, in order. The watch is armed when this resolves. */
export async function openFeed(sources: WatchSources, watched: WatchTarget, target: FeedTarget): Promise<EventFeed> {
  const waiting: TreeEvent[] = [];
  let giving: Promise<void> | undefined;

  const give = async () => {
    for (let event = waiting.shift(); event; event = waiting.shift())
      target.give(await described(sources.native, watched, event));
    giving = undefined;
    catchUp();
  };
  const hasRoom = () => waiting.length < waitingMax && target.hasRoom();
  const catchUp = () => {
    if (hasRoom()) tree.catchUp();
  };

  const tree = new TreeWatch(sources.inotify, watched.path, watched.isRecursive, {
    report(event) {
      if (!hasRoom()) return false;
      if (watched.includeEntry) {
        waiting.push(event);
        giving ??= give();
      } else target.give({ name: utf8(event.name), type: event.type });
      return true;
    },
    fail: error => target.fail(error),
  });
  await tree.arm();
  return {
    catchUp,
    async settle() {
      await tree.settle();
      await giving;
    },
    close: () => tree.close(),
  };
}

async function described(native: Native, { path }: WatchTarget, { name, type }: TreeEvent): Promise<FilesystemEvent> {
  const event: FilesystemEvent = { name: utf8(name), type };
  if (!withEntry.includes(type)) return event;
  const raw = name === '.' ? Buffer.from(path) : Buffer.concat([Buffer.from(`${path}/`), Buffer.from(name, 'latin1')]);
  const entry = await readEntry(native, raw.toString(), undefined, raw).catch(() => undefined);
  return entry ? { ...event, entry } : event;
}

const utf8 = (name: string) => Buffer.from(name, 'latin1').toString();
