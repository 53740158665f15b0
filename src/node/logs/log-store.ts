import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../base/error.ts';
import type { Log } from '../../base/log.ts';
import { sandboxLogDays, sandboxLogLevels, type ReadSandboxLogs, type SandboxLogEntry, type SandboxLogLevel } from '../../protocol/logs.ts';
import { plain } from './agent-line.ts';
import { pruneSegments } from './prune.ts';
import { openSegments, readSegment, segmentsIn, type AgentPlace, type Segments, type StoredEntry } from './segments.ts';

/** How long entries wait in memory to be written together. */
const writeDelayMs = 500;
/** Entries of one sandbox that wait: beyond, they are dropped and counted. */
const waitingMax = 2000;
/** Sandboxes whose files are known without looking. */
const openMax = 2000;
/** Files are looked through for what is too old or too much this often, and after this many bytes. */
const pruneIntervalMs = 10 * 60_000;
const pruneAfterBytes = 64 << 20;

/** The logs of a node's sandboxes, in files that outlive the sandboxes by `sandboxLogDays`. */
export type LogStore = {
  /** Takes note of something that the platform did with a sandbox, or saw of it. */
  note(sandboxId: string, level: SandboxLogLevel, logger: string, message: string, fields?: Record<string, string>): void;
  /** Adds what a sandbox's agent said. */
  add(sandboxId: string, entry: SandboxLogEntry, place: AgentPlace): void;
  /** The last entry of the sandbox's agent that is kept. */
  place(sandboxId: string): Promise<AgentPlace | undefined>;
  read(request: ReadSandboxLogs): Promise<SandboxLogEntry[]>;
  /** Writes what waits, and stops. */
  close(): Promise<void>;
};

type Kept = { waiting: StoredEntry[]; dropped: number; segments: Segments | undefined };

/** Opens the store in `directory`. `bytesMax` bounds all its files together: the oldest go first. */
export function openLogStore({ directory, bytesMax, log }: { directory: string; bytesMax: number; log: Log }): LogStore {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const kept = new Map<string, Kept>();
  const dirty = new Set<string>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let writing = Promise.resolve();
  let bytesSincePrune = 0;

  const keptOf = (sandboxId: string): Kept => {
    const known = kept.get(sandboxId) ?? { waiting: [], dropped: 0, segments: undefined };
    kept.delete(sandboxId); // the last used is the last in the map
    kept.set(sandboxId, known);
    return known;
  };
  const put = (sandboxId: string, entry: StoredEntry) => {
    const own = keptOf(sandboxId);
    if (own.waiting.length >= waitingMax) own.dropped++;
    else own.waiting.push(entry);
    dirty.add(sandboxId);
    timer ??= setTimeout(() => void write(), writeDelayMs);
  };

  const writeOne = async (sandboxId: string) => {
    const own = keptOf(sandboxId);
    const entries = own.waiting;
    own.waiting = [];
    if (own.dropped > 0) entries.push({ t: Date.now(), l: 2, g: 'agent', m: `${own.dropped} entries were dropped: there were too many at a time` });
    own.dropped = 0;
    own.segments ??= await openSegments(join(directory, sandboxId));
    if (entries.length > 0) bytesSincePrune += await own.segments.append(entries);
  };
  const writeAll = async () => {
    clearTimeout(timer);
    timer = undefined;
    const waiting = [...dirty];
    dirty.clear();
    for (const sandboxId of waiting) {
      await writeOne(sandboxId).catch(error => log.error('a sandbox’s log could not be written', { sandboxId, error: messageOf(error) }));
    }
    for (const sandboxId of kept.keys()) {
      if (kept.size <= openMax) break;
      if (!dirty.has(sandboxId)) kept.delete(sandboxId);
    }
    if (bytesSincePrune > pruneAfterBytes) await prune();
  };
  /** One after the other: entries keep their order. */
  const write = (): Promise<void> => (writing = writing.then(writeAll));

  const prune = async () => {
    bytesSincePrune = 0;
    try {
      const emptied = await pruneSegments(directory, { oldestMs: Date.now() - sandboxLogDays * 24 * 3600 * 1000, bytesMax });
      for (const sandboxId of emptied) if (!dirty.has(sandboxId)) kept.delete(sandboxId);
    } catch (error) {
      // What is written next must not wait for it.
      log.warn('old logs could not be removed', { error: messageOf(error) });
    }
  };
  const pruning = setInterval(() => {
    writing = writing.then(prune);
  }, pruneIntervalMs);
  pruning.unref();

  return {
    note: (sandboxId, level, logger, message, fields) =>
      put(sandboxId, { t: Date.now(), l: sandboxLogLevels.indexOf(level), g: logger, m: plain(message), ...(fields && { f: fields }) }),
    add: (sandboxId, { timestampMs, level, logger, message, fields }, { epoch, number }) =>
      put(sandboxId, { t: timestampMs, l: sandboxLogLevels.indexOf(level), g: logger, m: message, f: fields, e: epoch, n: number }),
    async place(sandboxId) {
      dirty.add(sandboxId);
      await write();
      return kept.get(sandboxId)?.segments?.place;
    },
    async read(request) {
      if (dirty.size > 0) await write();
      return readEntries(join(directory, request.sandboxId), request);
    },
    async close() {
      clearInterval(pruning);
      await write();
    },
  };
}

async function readEntries(directory: string, request: ReadSandboxLogs): Promise<SandboxLogEntry[]> {
  const { backward, limit, minimum = 'debug', search = '', beforeMs = Number.POSITIVE_INFINITY } = request;
  const fromMs = Math.max(request.fromMs ?? 0, Date.now() - sandboxLogDays * 24 * 3600 * 1000);
  const names = await segmentsIn(directory);
  const least = sandboxLogLevels.indexOf(minimum);
  const text = search.toLowerCase();
  const matches = (entry: SandboxLogEntry) =>
    entry.timestampMs >= fromMs &&
    entry.timestampMs < beforeMs &&
    sandboxLogLevels.indexOf(entry.level) >= least &&
    (text === '' || entry.message.toLowerCase().includes(text));
  // A file reaches to where the next one begins.
  const spans = names.map((name, index) => ({ name, firstMs: Number.parseInt(name), nextMs: Number.parseInt(names[index + 1] ?? '') || Number.POSITIVE_INFINITY }));
  const touched = spans.filter(({ firstMs, nextMs }) => firstMs < beforeMs && nextMs > fromMs);
  const found: SandboxLogEntry[] = [];
  for (const { name } of backward ? touched.reverse() : touched) {
    if (found.length >= limit) break;
    const entries = (await readSegment(join(directory, name))).filter(matches);
    found.push(...(backward ? entries.reverse() : entries));
  }
  return found.slice(0, limit);
}
