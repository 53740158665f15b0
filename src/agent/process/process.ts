import { encodeBytesMessage, encodeMessage } from '../connect/envelope.ts';
import type { Outbox } from '../connect/outbox.ts';
import type { ProcessLog } from './process-log.ts';
import type { ProcessConfig } from './config.ts';
import { endEventOf, type EndEvent, type Ending } from './end-status.ts';
import { FanOut } from './fan-out.ts';
import type { Output, OutputName, Program } from './program.ts';
import { Replay } from './replay.ts';

/** Longest piece of output per event, bytes. */
const pieceBytesMax: Record<OutputName, number> = { stdout: 32 << 10, stderr: 32 << 10, pty: 16 << 10 };

/** After a client's signal, output counts as complete once nothing came for this long… */
const quietMs = 50;
/** …or once more came than a pipe can have held at the end (the largest that Linux allows an ordinary user). */
const leftInPipeBytesMax = 1 << 20;

const sigkill = 9;

/** Whether the kernel killed something in the sandbox for lack of memory since the last call. */
export type OutOfMemoryWatch = { sawKill(): boolean };

/** A program with its attached clients. */
export class Process {
  readonly pid: number;
  readonly config: ProcessConfig;
  readonly tag: string | undefined;
  readonly program: Program;
  /** Resolves with the last event, after all output was given to the attached clients. */
  readonly ended: Promise<EndEvent>;
  /** False as soon as the program has ended, even if its output has not: its PID is free again. */
  isAlive = true;

  #fanOut = new FanOut();
  /** The end of what the terminal has shown; terminals only. */
  #replay: Replay | undefined;
  #log: ProcessLog;
  #wasSignalled = false;
  #signalled = Promise.withResolvers<void>();
  #programEndedAt = Number.POSITIVE_INFINITY;
  #outputs: { bytesSinceEnd: number; readingSince: number; isOver: boolean }[] = [];

  constructor(
    program: Program,
    config: ProcessConfig,
    tag: string | undefined,
    { outOfMemory, log }: { outOfMemory: OutOfMemoryWatch; log: ProcessLog },
  ) {
    this.program = program;
    this.pid = program.pid;
    this.config = config;
    this.tag = tag;
    this.#log = log;
    if (program.outputs.some(({ name }) => name === 'pty')) this.#replay = new Replay();
    this.ended = this.#run(outOfMemory);
  }

  /**
   * Sends `outbox` the start event and everything from now on. `replays`: what a terminal has shown comes first, and
   * the start event tells its length in bytes.
   */
  attach(outbox: Outbox, { replays = false }: { replays?: boolean } = {}): void {
    const pieces = (replays && this.#replay?.pieces()) || [];
    const replayed = pieces.reduce((sum, { length }) => sum + length, 0);
    outbox.addMessage({ event: { start: { pid: this.pid, ...(replays && { replayed }) } } });
    for (const piece of pieces) outbox.add(encodeBytesMessage(dataBefore('pty'), piece, dataAfter));
    this.#fanOut.attach(outbox);
  }

  detach(outbox: Outbox): void {
    this.#fanOut.detach(outbox);
  }

  /** Signals the program itself, not its children; if only they are left, their output is no longer waited for. */
  signal(number: number): void {
    if (this.isAlive) {
      this.program.signal(number);
      this.#log.signalled(number);
    }
    this.#wasSignalled = true;
    this.#signalled.resolve();
  }

  /** Kills the process unless it ends within `timeoutMs`, then calls `then`. The caller may be long gone by then. */
  endWithin(timeoutMs: number, then: () => void = () => {}): void {
    const timer = setTimeout(() => {
      this.signal(sigkill);
      then();
    }, timeoutMs);
    void this.ended.then(() => clearTimeout(timer));
  }

  async #run(outOfMemory: OutOfMemoryWatch): Promise<EndEvent> {
    const outputs = this.program.outputs.map(output => this.#pump(output));
    const ending = await this.program.ended;
    this.isAlive = false;
    this.#programEndedAt = performance.now();
    void this.program.input?.close();
    const wasMemory = endedByKernel(ending) && !this.#wasSignalled && outOfMemory.sawKill();
    const isTerminal = this.program.outputs.some(({ name }) => name === 'pty');
    const event = endEventOf(ending, wasMemory && !isTerminal);
    // The rest of the pipe's content comes before the end. Children that share the pipe may keep it open for ever: we
    // wait for them, as a shell's `$(…)` does, unless a client wanted the process gone.
    await Promise.race([Promise.all(outputs), this.#signalled.promise.then(() => this.#quiet())]);
    this.#log.ended(endEventOf(ending, wasMemory));
    this.#fanOut.end(encodeMessage({ event: { end: event } }));
    return event;
  }

  /**
   * Reads an output to its end, even if nobody is attached, so that the program never waits for a pipe that nobody
   * reads.
   */
  async #pump({ name, reader }: Output): Promise<void> {
    const progress = { bytesSinceEnd: 0, readingSince: 0, isOver: false };
    this.#outputs.push(progress);
    const lines = this.#log.linesOf(name);
    const before = dataBefore(name);
    for (;;) {
      progress.readingSince = performance.now();
      // A terminal whose last program has ended answers EIO.
      const { value, done } = await reader.read().catch(() => ({ value: undefined, done: true }));
      progress.readingSince = Number.POSITIVE_INFINITY;
      if (done || value === undefined) break;
      if (!this.isAlive) progress.bytesSinceEnd += value.length;
      lines?.take(value);
      for (let at = 0; at < value.length; at += pieceBytesMax[name]) {
        const piece = value.subarray(at, at + pieceBytesMax[name]);
        // Both at once: a client that attaches between two pieces gets each of them once.
        this.#replay?.add(piece);
        if (this.#fanOut.isEmpty) continue;
        this.#fanOut.add(encodeBytesMessage(before, piece, dataAfter));
        await this.#fanOut.room();
      }
    }
    lines?.end();
    progress.isOver = true;
  }

  async #quiet(): Promise<void> {
    const isQuiet = () =>
      this.#outputs.every(
        ({ bytesSinceEnd, readingSince, isOver }) =>
          isOver ||
          bytesSinceEnd > leftInPipeBytesMax ||
          performance.now() - Math.max(readingSince, this.#programEndedAt) >= quietMs,
      );
    while (!isQuiet()) await Bun.sleep(quietMs / 5);
  }
}

/** What surrounds the bytes of an output in its event. */
const dataBefore = (name: OutputName) => `{"event":{"data":{"${name}":"`;
const dataAfter = '"}}}';

/** SIGKILL, or a shell's report of it: the two ways in which the kernel's choice of a victim shows. */
const endedByKernel = (ending: Ending): boolean =>
  'signal' in ending ? ending.signal === sigkill : ending.exitCode === 128 + sigkill;
