import { join } from 'node:path';
import { messageOf } from '../../base/error.ts';
import type { Log } from '../../base/telemetry/log.ts';
import { sandboxLogLevels } from '../../protocol/logs.ts';
import type { AgentPlace } from '../agent-client/log-line.ts';
import { openSegments, type Segments, type StoredEntry } from './segments.ts';

/** How many entries of one sandbox may wait: more are dropped and counted. */
const waitingMax = 2000;
/** How many sandboxes' files are remembered. */
const openMax = 2000;
/** Files are pruned after this many bytes were written. */
const pruneAfterBytes = 64 << 20;

type Waiting = { entries: StoredEntry[]; dropped: number; segments: Segments | undefined };

/** Entries of each sandbox that wait to be written together, and the files that they go to. */
type EntryQueue = {
  put(sandboxId: string, entry: StoredEntry): void;
  /** Makes the next `write` open a sandbox's files, even if nothing waits. */
  open(sandboxId: string): void;
  hasWaiting(): boolean;
  /** Writes the entries that wait. Those that can't be written are dropped, and the log says so. One call at a time. */
  write(): Promise<void>;
  /** The last entry of the sandbox's agent in its files, once they are open. */
  place(sandboxId: string): AgentPlace | undefined;
  /** The time of the last entry in the sandbox's files, if they are open. */
  lastMs(sandboxId: string): number | undefined;
  /** Whether so many bytes were written since this was last true that files should be pruned. */
  takesPruning(): boolean;
  /** The files of these sandboxes are gone. */
  forget(sandboxIds: Iterable<string>): void;
};

/** `directory`: where each sandbox has a folder with its files. */
export function createEntryQueue(directory: string, log: Log): EntryQueue {
  const known = new Map<string, Waiting>();
  const dirty = new Set<string>();
  let bytesSincePrune = 0;

  const of = (sandboxId: string): Waiting => {
    const waiting = known.get(sandboxId) ?? { entries: [], dropped: 0, segments: undefined };
    known.delete(sandboxId); // the one used last is the last in the map
    known.set(sandboxId, waiting);
    return waiting;
  };
  const writeOne = async (sandboxId: string) => {
    const own = of(sandboxId);
    const entries = own.entries;
    own.entries = [];
    if (own.dropped > 0) entries.push(droppedEntry(own.dropped));
    own.dropped = 0;
    own.segments ??= await openSegments(join(directory, sandboxId));
    if (entries.length > 0) bytesSincePrune += await own.segments.append(entries);
  };
  const closeIdle = () => {
    for (const sandboxId of known.keys()) {
      if (known.size <= openMax) break;
      if (!dirty.has(sandboxId)) known.delete(sandboxId);
    }
  };

  return {
    put(sandboxId, entry) {
      const own = of(sandboxId);
      if (own.entries.length >= waitingMax) own.dropped++;
      else own.entries.push(entry);
      dirty.add(sandboxId);
    },
    open: sandboxId => void dirty.add(sandboxId),
    hasWaiting: () => dirty.size > 0,
    async write() {
      const sandboxIds = [...dirty];
      dirty.clear();
      for (const sandboxId of sandboxIds) {
        await writeOne(sandboxId).catch(error =>
          log.error('a sandbox’s log could not be written', { sandboxId, error: messageOf(error) }),
        );
      }
      closeIdle();
    },
    place: sandboxId => known.get(sandboxId)?.segments?.place,
    lastMs: sandboxId => known.get(sandboxId)?.segments?.lastMs,
    takesPruning() {
      if (bytesSincePrune <= pruneAfterBytes) return false;
      bytesSincePrune = 0;
      return true;
    },
    forget(sandboxIds) {
      for (const sandboxId of sandboxIds) if (!dirty.has(sandboxId)) known.delete(sandboxId);
    },
  };
}

function droppedEntry(count: number): StoredEntry {
  return {
    t: Date.now(),
    l: sandboxLogLevels.indexOf('warn'),
    g: 'agent',
    m: `${count} entries were dropped: there were too many at a time`,
  };
}
