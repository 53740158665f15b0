import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../base/error.ts';
import type { Log } from '../../base/telemetry/log.ts';
import {
  sandboxLogDays,
  sandboxLogLevels,
  type ReadSandboxLogs,
  type SandboxLogEntry,
  type SandboxLogLevel,
} from '../../protocol/logs.ts';
import { type AgentPlace, plain } from '../agent-client/log-line.ts';
import { pruneSegments } from './prune.ts';
import { createEntryQueue } from './entry-queue.ts';
import { readSegment, segmentsIn, type StoredEntry } from './segments.ts';

/** How long entries wait in memory to be written together. */
const writeDelayMs = 500;
/** How often files are searched for what is too old or too much; many bytes written also trigger it. */
const pruneIntervalMs = 10 * 60_000;

/** The logs of a node's sandboxes, in files that outlive the sandboxes by `sandboxLogDays`. */
export type LogStore = {
  /** Writes an entry about something that the platform did with a sandbox, or saw of it. */
  write(
    sandboxId: string,
    level: SandboxLogLevel,
    logger: string,
    message: string,
    fields?: Record<string, string>,
  ): void;
  /** Adds what a sandbox's agent said. */
  add(sandboxId: string, entry: SandboxLogEntry, place: AgentPlace): void;
  /** The last entry of the sandbox's agent that is kept. */
  place(sandboxId: string): Promise<AgentPlace | undefined>;
  read(request: ReadSandboxLogs): Promise<SandboxLogEntry[]>;
  /** Writes the entries that wait, and stops. */
  close(): Promise<void>;
};

/** Opens the store in `directory`. `bytesMax` bounds all its files together: the oldest are deleted first. */
export function openLogStore({
  directory,
  bytesMax,
  log,
}: {
  directory: string;
  bytesMax: number;
  log: Log;
}): LogStore {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const queue = createEntryQueue(directory, log);
  let timer: ReturnType<typeof setTimeout> | undefined;
  let writing = Promise.resolve();

  const prune = async () => {
    const oldestMs = Date.now() - sandboxLogDays * 24 * 3600 * 1000;
    try {
      queue.forget(await pruneSegments(directory, { oldestMs, bytesMax }));
    } catch (error) {
      // A failure here must not hold up the next write.
      log.warn('old logs could not be removed', { error: messageOf(error) });
    }
  };
  const writeAll = async () => {
    clearTimeout(timer);
    timer = undefined;
    await queue.write();
    if (queue.takesPruning()) await prune();
  };
  /** Writes one batch after the other, so that entries keep their order. */
  const write = (): Promise<void> => (writing = writing.then(writeAll));
  const put = (sandboxId: string, entry: StoredEntry) => {
    queue.put(sandboxId, entry);
    timer ??= setTimeout(() => void write(), writeDelayMs);
  };
  const pruning = setInterval(() => {
    writing = writing.then(prune);
  }, pruneIntervalMs);
  pruning.unref();

  return {
    write: (sandboxId, level, logger, message, fields) => {
      const l = sandboxLogLevels.indexOf(level);
      put(sandboxId, { t: Date.now(), l, g: logger, m: plain(message), ...(fields && { f: fields }) });
    },
    add: (sandboxId, { timestampMs, level, logger, message, fields }, { epoch, number }) => {
      const l = sandboxLogLevels.indexOf(level);
      put(sandboxId, { t: timestampMs, l, g: logger, m: message, f: fields, e: epoch, n: number });
    },
    async place(sandboxId) {
      queue.open(sandboxId);
      await write();
      return queue.place(sandboxId);
    },
    async read(request) {
      if (queue.hasWaiting()) await write();
      // A reader that follows a log asks several times a second, and mostly there is nothing new.
      if ((request.fromMs ?? 0) > (queue.lastMs(request.sandboxId) ?? Number.POSITIVE_INFINITY)) return [];
      return readEntries(join(directory, request.sandboxId), request);
    },
    async close() {
      clearInterval(pruning);
      await write();
    },
  };
}

async function readEntries(directory: string, request: ReadSandboxLogs): Promise<SandboxLogEntry[]> {
  const { backward, limit, minimum = 'debug', logger, search = '', beforeMs = Number.POSITIVE_INFINITY } = request;
  const fromMs = Math.max(request.fromMs ?? 0, Date.now() - sandboxLogDays * 24 * 3600 * 1000);
  const names = await segmentsIn(directory);
  const least = sandboxLogLevels.indexOf(minimum);
  const text = search.toLowerCase();
  const matches = (entry: SandboxLogEntry) =>
    sandboxLogLevels.indexOf(entry.level) >= least &&
    (logger === undefined || entry.logger === logger) &&
    (text === '' || entry.message.toLowerCase().includes(text));
  // A file covers the time up to the beginning of the next.
  const spans = names.map((name, index) => ({
    name,
    firstMs: Number.parseInt(name),
    nextMs: Number.parseInt(names[index + 1] ?? '') || Number.POSITIVE_INFINITY,
  }));
  const touched = spans.filter(({ firstMs, nextMs }) => firstMs < beforeMs && nextMs > fromMs);
  const found: SandboxLogEntry[] = [];
  for (const { name } of backward ? touched.reverse() : touched) {
    for (const entry of await readSegment(join(directory, name), { fromMs, beforeMs, backward })) {
      if (found.length >= limit) return found;
      if (matches(entry)) found.push(entry);
    }
    if (found.length >= limit) break;
  }
  return found;
}
