import type { AgentLogLine } from '../../protocol/agent.ts';
import { sandboxLogLevels, type SandboxLogLevel } from '../../protocol/logs.ts';

/** Entries that wait for the platform, or that were sent recently and may be requested again. */
const entriesMax = 1000;
const bytesMax = 256 << 10;
/** Characters per entry: of its message, and of each of its fields. */
const messageCharactersMax = 2048;
/** How long entries are collected after something was sent, milliseconds. */
const collectMs = 20;
/** Bytes that may wait in the connection; beyond this, nothing is added to it. */
const streamBytesMax = 64 << 10;

type Kept = { number: number; line: Uint8Array<ArrayBuffer> };
type Follower = { controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>; sent: number };

/** Facts of one entry by name. */
type Fields = Record<string, string>;

/**
 * The sandbox's log until the platform has it. The newest entries stay in memory, so that none is lost while nobody
 * follows; a checkpoint holds them with the rest of the agent. Values of the environment and contents of files never
 * get in.
 */
export class Journal {
  /** Distinguishes this agent from its predecessor, which numbered its entries separately. */
  readonly #epoch: string;
  #kept: Kept[] = [];
  #bytes = 0;
  #next = 1;
  #follower: Follower | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #sentAt = 0;

  constructor(epoch: string) {
    this.#epoch = epoch;
  }

  /** Adds an entry. `now`: the platform gets it without delay. */
  add(level: SandboxLogLevel, logger: string, message: string, fields: Fields, { now = false } = {}): void {
    const line: AgentLogLine = {
      n: this.#next++,
      t: Date.now(),
      l: sandboxLogLevels.indexOf(level),
      logger,
      message: short(message),
      fields: Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, short(value)])),
    };
    const bytes = encode(line);
    this.#kept.push({ number: line.n, line: bytes });
    this.#bytes += bytes.length;
    while (this.#kept.length > entriesMax || this.#bytes > bytesMax)
      this.#bytes -= this.#kept.shift()?.line.length ?? 0;
    if (now) this.#send();
    else this.#sendSoon();
  }

  /** The present lines after entry `after` of `epoch`. */
  since(epoch: string, after: number): Uint8Array<ArrayBuffer> {
    const sent = this.#sentOf(epoch, after);
    return Buffer.concat([
      encode({ epoch: this.#epoch }),
      ...this.#kept.slice(this.#indexAfter(sent)).map(kept => kept.line),
    ]);
  }

  /** The same plus all later lines. A new follower ends the previous follower's stream. */
  follow(epoch: string, after: number): ReadableStream<Uint8Array<ArrayBuffer>> {
    this.#end();
    const sent = this.#sentOf(epoch, after);
    let own: Follower | undefined;
    return new ReadableStream(
      {
        start: controller => {
          controller.enqueue(encode({ epoch: this.#epoch }));
          this.#follower = own = { controller, sent };
          this.#send();
        },
        pull: () => this.#send(),
        cancel: () => {
          if (this.#follower === own) this.#follower = undefined;
        },
      },
      { highWaterMark: streamBytesMax, size: chunk => chunk?.length ?? 0 },
    );
  }

  /** Numbers of another epoch mean nothing. */
  #sentOf(epoch: string, after: number): number {
    return epoch === this.#epoch ? Math.min(after, this.#next - 1) : 0;
  }

  /** The numbers have no gap, and entries dropped from the beginning can't be sent any more. */
  #indexAfter(sent: number): number {
    return Math.max(0, sent + this.#kept.length + 1 - this.#next);
  }

  #sendSoon(): void {
    if (this.#follower === undefined || this.#timer !== undefined) return;
    const waitMs = Math.max(0, this.#sentAt + collectMs - performance.now());
    this.#timer = setTimeout(() => this.#send(), waitMs);
  }

  #send(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const follower = this.#follower;
    if (follower === undefined) return;
    let at = this.#indexAfter(follower.sent);
    for (let kept = this.#kept[at]; kept !== undefined; kept = this.#kept[++at]) {
      if ((follower.controller.desiredSize ?? 0) <= 0) return;
      follower.controller.enqueue(kept.line);
      follower.sent = kept.number;
      this.#sentAt = performance.now();
    }
  }

  #end(): void {
    const follower = this.#follower;
    this.#follower = undefined;
    try {
      follower?.controller.close();
    } catch {
      // Its client was gone already.
    }
  }
}

const short = (text: string) =>
  text.length > messageCharactersMax ? `${text.slice(0, messageCharactersMax)}… (${text.length} characters)` : text;

function encode(line: AgentLogLine): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(`${JSON.stringify(line)}\n`);
}
