import type { OutputName } from './program.ts';
import type { OutputBudget } from '../journal/budget.ts';

/** Bytes of a line that go into the log. */
const lineBytesMax = 1024;
const newline = 10;

type LineSink = { line(text: string): void; dropped(bytes: number): void };

/** Splits a process's output into lines, within the sandbox's budget; the rest is counted. */
export class OutputLines {
  readonly name: OutputName;
  #budget: OutputBudget;
  #sink: LineSink;
  #begun: Uint8Array[] = [];
  #begunBytes = 0;
  /** Bytes of the current line that do not fit. */
  #cutBytes = 0;
  #droppedBytes = 0;

  constructor(name: OutputName, budget: OutputBudget, sink: LineSink) {
    this.name = name;
    this.#budget = budget;
    this.#sink = sink;
  }

  take(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length) {
      if (!this.#budget.isOpen()) {
        this.#droppedBytes += bytes.length - at;
        return;
      }
      const end = bytes.indexOf(newline, at);
      this.#begin(bytes.subarray(at, end < 0 ? bytes.length : end));
      if (end < 0) return;
      this.#finish();
      at = end + 1;
    }
  }

  /** The output is over. */
  end(): void {
    if (this.#begunBytes > 0) this.#finish();
    this.#reportDropped();
  }

  #begin(part: Uint8Array): void {
    const fitting = part.subarray(0, Math.max(lineBytesMax - this.#begunBytes, 0));
    // A copy: the buffer that it came in is reused.
    if (fitting.length > 0) this.#begun.push(fitting.slice());
    this.#begunBytes += fitting.length;
    this.#cutBytes += part.length - fitting.length;
  }

  #finish(): void {
    this.#reportDropped();
    const text = Buffer.concat(this.#begun).toString().replace(/\r$/, '');
    this.#budget.spend(this.#begunBytes);
    const cut = this.#cutBytes > 0 ? `… (${this.#cutBytes} bytes more)` : '';
    this.#begun = [];
    this.#begunBytes = 0;
    this.#cutBytes = 0;
    if (text !== '' || cut !== '') this.#sink.line(text + cut);
  }

  #reportDropped(): void {
    if (this.#droppedBytes > 0) this.#sink.dropped(this.#droppedBytes);
    this.#droppedBytes = 0;
  }
}
