import type { SandboxLogEntry } from '../../protocol/logs.ts';
import { type AgentPlace, readAgentLine } from './log-line.ts';

/** Bytes read from one sandbox in a second: more waits in its connection, and the agent drops what is too much. */
const bytesPerSecond = 256 << 10;
const entriesPerSecond = 1000;
/** The same in lines, and in pieces of bytes: an agent sends each line in one piece. */
const partsPerSecond = 4000;
/** The same in time of the node's thread: how long an entry takes depends on its text and on the sandbox's policy. */
const msPerSecond = 50;

/** Where the log of one sandbox's agent goes. */
export type LogSink = {
  /** The last entry that the sink has taken, from this follower or an earlier one. */
  place(): Promise<AgentPlace | undefined>;
  add(entry: SandboxLogEntry, place: AgentPlace): void;
  /** Entries are missing from here on; `text` says how many, or why. */
  gap(text: string, fields: Record<string, string>): void;
};

/** Takes the lines of an agent's log in order, each once, and no more in a second than is fair. */
export class LogIntake {
  /** The last entry that was taken. */
  place: AgentPlace | undefined;
  readonly #sink: LogSink;
  readonly #createdMs: number | undefined;
  #secondBegan = 0;
  #bytesLeft = bytesPerSecond;
  #entriesLeft = entriesPerSecond;
  #partsLeft = partsPerSecond;
  #msLeft = msPerSecond;

  /**
   * `createdMs`: older entries belong to another sandbox, whose memory this one began with. Undefined: there are none.
   */
  constructor(sink: LogSink, createdMs: number | undefined) {
    this.#sink = sink;
    this.#createdMs = createdMs;
  }

  /** Whether this second has room for more. */
  get hasRoom(): boolean {
    return this.#bytesLeft > 0 && this.#partsLeft > 0 && this.#msLeft > 0;
  }

  /** Counts one piece that bytes of lines came in. */
  countPiece(): void {
    this.#partsLeft--;
  }

  /** Counts bytes that were read. Answers for how many milliseconds reading must pause; 0: not at all. */
  count(bytes: number): number {
    this.beginSecond();
    this.#bytesLeft -= bytes;
    return this.hasRoom ? 0 : Math.max(1, this.#secondBegan + 1000 - performance.now());
  }

  /** Begins another second, if the one before is over. */
  beginSecond(): void {
    const now = performance.now();
    if (now - this.#secondBegan < 1000) return;
    this.#secondBegan = now;
    this.#bytesLeft = bytesPerSecond;
    this.#entriesLeft = entriesPerSecond;
    this.#partsLeft = partsPerSecond;
    this.#msLeft = msPerSecond;
  }

  /** Takes a line. Throws if it is not a line of a log. */
  take(text: string): void {
    const began = performance.now();
    this.#partsLeft--;
    this.#takeLine(text);
    this.#msLeft -= performance.now() - began;
  }

  #takeLine(text: string): void {
    const line = readAgentLine(text, Date.now());
    if (line === undefined) throw new Error('the agent sent what is no log');
    if ('epoch' in line) {
      if (line.epoch !== this.place?.epoch) this.place = { epoch: line.epoch, number: 0 };
      return;
    }
    const before = this.place;
    if (before === undefined || line.number <= before.number) return;
    this.place = { epoch: before.epoch, number: line.number };
    if (this.#createdMs !== undefined && line.entry.timestampMs < this.#createdMs) return;
    const missing = before.number === 0 ? 0 : line.number - before.number - 1;
    if (missing > 0) this.#reportMissing(missing);
    this.#add(line.entry, this.place);
  }

  #reportMissing(missing: number): void {
    if (this.#entriesLeft <= 0) return;
    this.#entriesLeft--;
    const fields = { event: 'dropped', entries: String(missing) };
    this.#sink.gap(`${missing} entries were dropped: there were too many at a time`, fields);
  }

  #add(entry: SandboxLogEntry, place: AgentPlace): void {
    this.#entriesLeft--;
    if (this.#entriesLeft >= 0) this.#sink.add(entry, place);
    else if (this.#entriesLeft === -1)
      this.#sink.gap(`entries are dropped: there are more than ${entriesPerSecond} a second`, { event: 'dropped' });
  }
}
