import { progressBounds } from '../../protocol/build.ts';
import type { BuildLogEntry, BuildLogLevel, BuildProgress, BuildResult } from '../../protocol/build.ts';

/** Lines kept of one build. Further lines are only counted. */
const entriesMax = 20_000;
const { messageCharacters: messageCharactersMax, entries: pageMax } = progressBounds;
/** Characters of all messages of one build together. */
const logCharactersMax = 16 << 20;

/** The log of one build: written as it runs, read by number, so that no entry is lost or read twice. */
export type BuildLog = {
  write(message: string, options?: { level?: BuildLogLevel; step?: string }): void;
  /** Ends the log: nothing is written after this. */
  end(result: BuildResult): void;
  result(): BuildResult | undefined;
  /** Answers at once if there is something after `after`, else when there is, or when `waitMs` have passed. */
  read(after: number, waitMs: number): Promise<BuildProgress>;
  /** Makes waiting readers look again. */
  wake(): void;
};

/** Makes an empty log. `now`: epoch milliseconds. */
export function createBuildLog(now: () => number): BuildLog {
  const entries: BuildLogEntry[] = [];
  let characters = 0;
  let isCut = false;
  let result: BuildResult | undefined;
  let changed = Promise.withResolvers<void>();
  const wake = () => {
    changed.resolve();
    changed = Promise.withResolvers();
  };
  return {
    write(message, { level = 'info', step } = {}) {
      if (result || isCut) return;
      isCut = entries.length === entriesMax || characters >= logCharactersMax;
      const text = isCut
        ? `the log is cut here: it has ${entries.length} lines`
        : message.slice(0, messageCharactersMax);
      characters += text.length;
      entries.push({ timestampMs: now(), level, message: text, ...(step !== undefined && { step }) });
      wake();
    },
    end(final) {
      result = final;
      wake();
    },
    result: () => result,
    wake,
    async read(after, waitMs) {
      if (entries.length <= after && !result) await Promise.race([changed.promise, Bun.sleep(waitMs)]);
      const page = entries.slice(after, after + pageMax);
      const next = after + page.length;
      return { entries: page, next, ...(result && next >= entries.length && { result }) };
    },
  };
}

/**
 * Cuts a program's output into lines, separately for each stream, and hands them on without colours or carriage
 * returns.
 */
export function createLineSplitter(onLine: (line: string) => void): {
  take(stream: string, bytes: Uint8Array): void;
  end(): void;
} {
  const rests = new Map<string, { decoder: TextDecoder; text: string }>();
  const emit = (line: string) => {
    const text = lastState(line);
    if (text.trim() !== '') onLine(text);
  };
  return {
    take(stream, bytes) {
      const rest = rests.get(stream) ?? { decoder: new TextDecoder(), text: '' };
      rests.set(stream, rest);
      const lines = (rest.text + rest.decoder.decode(bytes, { stream: true })).split('\n');
      rest.text = (lines.pop() ?? '').slice(-messageCharactersMax);
      lines.forEach(emit);
    },
    end() {
      for (const rest of rests.values()) emit(rest.text);
      rests.clear();
    },
  };
}

/** Keeps the last state of a progress bar: the text after the last carriage return that has text after it. */
function lastState(line: string): string {
  let end = line.length;
  while (end > 0 && line[end - 1] === '\r') end--;
  const start = end === 0 ? 0 : line.lastIndexOf('\r', end - 1) + 1;
  return line.slice(start, end);
}

/** How many lines of a failed command its error quotes. */
const quotedLines = 20;

/** Cuts a program's output into lines, logs each, and keeps the `last` ones for an error. */
export function logLines(log: (line: string) => void): ReturnType<typeof createLineSplitter> & { last: string[] } {
  const last: string[] = [];
  const lines = createLineSplitter(line => {
    log(line);
    last.push(line);
    if (last.length > quotedLines) last.shift();
  });
  return { ...lines, last };
}
