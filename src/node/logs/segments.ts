import { appendFile, mkdir, open, readdir, readFile, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { AgentPlace } from '../agent-client/log-line.ts';
import { sandboxLogLevels, type SandboxLogEntry } from '../../protocol/logs.ts';
import { parseJson } from '../../base/json-text.ts';

/** Bytes of one file, and files of one sandbox: the oldest goes when there are more. */
const segmentBytesMax = 1 << 20;
const segmentsMax = 8;
/** How much of a file's end is read to find its last line. */
const tailBytes = 32 << 10;

/** Where the time of an entry is in its line, which begins with it. */
const timeAt = '{"t":'.length;

/** An entry as a line of a file, in short form. Entries of an agent include their place in its stream. */
export type StoredEntry = {
  t: number;
  l: number;
  g: string;
  m: string;
  f?: Record<string, string>;
  e?: string;
  n?: number;
};

/** One sandbox's files, named by the time of their first entry. */
export type Segments = {
  lastMs: number;
  place: AgentPlace | undefined;
  /** Adds entries and gives each its own time. */
  append(entries: StoredEntry[]): Promise<number>;
};

/** Opens the files of one sandbox. `directory` is made if it is missing. */
export async function openSegments(directory: string): Promise<Segments> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const names = await segmentsIn(directory);
  const newest = names.at(-1);
  const end = newest === undefined ? undefined : await endOf(join(directory, newest));
  // A line that a crash cut off must not swallow the next one: new entries go into another file.
  let current = newest !== undefined && end?.isWhole ? newest : undefined;
  let bytes = end?.bytes ?? 0;
  const segments: Segments = {
    lastMs: end?.last?.t ?? Number(newest?.slice(0, -'.jsonl'.length) ?? 0),
    place: end?.place,
    async append(entries) {
      const lines = entries.map(entry => {
        segments.lastMs = Math.max(entry.t, segments.lastMs + 1);
        if (entry.e !== undefined && entry.n !== undefined) segments.place = { epoch: entry.e, number: entry.n };
        return `${JSON.stringify({ ...entry, t: segments.lastMs })}\n`;
      });
      if (current === undefined || bytes >= segmentBytesMax) {
        current = `${segments.lastMs - entries.length + 1}.jsonl`;
        bytes = 0;
        names.push(current);
        // If it is not there any more, it was pruned.
        while (names.length > segmentsMax) await unlink(join(directory, names.shift() ?? '')).catch(() => {});
      }
      const text = Buffer.from(lines.join(''));
      await mkdir(directory, { recursive: true, mode: 0o700 });
      await appendFile(join(directory, current), text, { mode: 0o600 });
      bytes += text.length;
      return text.length;
    },
  };
  return segments;
}

/** The names of a sandbox's files, the oldest first. */
export async function segmentsIn(directory: string): Promise<string[]> {
  const names = await readdir(directory).catch(() => []);
  return names.filter(name => /^\d+\.jsonl$/.test(name)).sort((a, b) => Number.parseInt(a) - Number.parseInt(b));
}

/** Which entries of a file are read, and in which order. */
type Span = { fromMs: number; beforeMs: number; backward: boolean };

/** The entries of a file, without what a crash cut off. Each is parsed when it is asked for: few cost little. */
export async function readSegment(path: string, span: Span): Promise<Iterable<SandboxLogEntry>> {
  const text = await readFile(path, 'utf8').catch(() => '');
  const lines = text.split('\n').filter(line => {
    const timeMs = Number.parseInt(line.slice(timeAt), 10);
    return timeMs >= span.fromMs && timeMs < span.beforeMs;
  });
  return entriesOf(span.backward ? lines.reverse() : lines);
}

function* entriesOf(lines: readonly string[]): Generator<SandboxLogEntry> {
  for (const line of lines) {
    const stored = parse(line);
    if (!stored) continue;
    const { t, l, g, m, f = {} } = stored;
    yield { timestampMs: t, level: sandboxLogLevels[l] ?? 'info', logger: g, message: m, fields: f };
  }
}

type End = { isWhole: boolean; bytes: number; last: StoredEntry | undefined; place: AgentPlace | undefined };

async function endOf(path: string): Promise<End> {
  const { size } = await stat(path);
  const start = Math.max(0, size - tailBytes);
  await using file = await open(path);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(size - start), 0, size - start, start);
  const text = buffer.toString('utf8', 0, bytesRead);
  const entries = text
    .split('\n')
    .slice(start > 0 ? 1 : 0)
    .flatMap(line => (line === '' ? [] : (parse(line) ?? [])));
  const placed = entries.findLast(entry => entry.e !== undefined);
  return {
    isWhole: text.endsWith('\n'),
    bytes: size,
    last: entries.at(-1),
    place: placed?.e === undefined ? undefined : { epoch: placed.e, number: placed.n ?? 0 },
  };
}

/** Only `append` wrote the file, so a line that parses is complete; a loss of power may have cut off the last one. */
function parse(line: string): StoredEntry | undefined {
  return parseJson(line) as StoredEntry | undefined;
}
