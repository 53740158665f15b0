import { AtollError } from '../../base/error.ts';
import { messageField, stringField, uint32Field, type Message } from '../connect/message.ts';
import type { EndEvent } from './end-status.ts';
import type { Process } from './process.ts';

/** How long the end of a process is kept, milliseconds. */
const endedKeptMs = 30_000;
/** Ends that are kept; beyond this, the oldest are forgotten early. */
const endedMax = 2000;

type Ended = { pid: number; tag: string | undefined; event: EndEvent; atMs: number };

/** The process of a selector: one that runs (or whose children still write for it), or the end of one. */
type Selected = { process: Process } | { pid: number; event: EndEvent };

/** The processes that were started through the agent. */
export class ProcessTable {
  // In start order. Not by PID: a second process can get the PID of a first one whose output lasts.
  #processes = new Set<Process>();
  #ended: Ended[] = [];

  /** Keeps a process until it has ended, then its end for a while. */
  add(process: Process, onEnd: () => void): void {
    this.#processes.add(process);
    void process.ended.then(event => {
      this.#processes.delete(process);
      this.addEnded({ pid: process.pid, tag: process.tag, event });
      onEnd();
    });
  }

  /** Keeps the end of a process for a while. */
  addEnded(ended: Omit<Ended, 'atMs'>): void {
    this.#forget(endedMax - 1);
    this.#ended.push({ ...ended, atMs: performance.now() });
  }

  /** Those that run. */
  alive(): Process[] {
    return [...this.#processes].filter(process => process.isAlive);
  }

  /**
   * The process that `{pid}` or `{tag}` of a message names, or its end. A running process takes precedence over ended
   * ones.
   */
  select(message: Message): Selected {
    const { matches, text } = readSelector(message);
    const matching = [...this.#processes].filter(matches);
    const process = matching.find(one => one.isAlive) ?? matching.at(-1);
    if (process) return { process };
    this.#forget(endedMax);
    const ended = this.#ended.findLast(matches);
    if (ended) return { pid: ended.pid, event: ended.event };
    throw notFound(text);
  }

  /** The running process that a message names, else `not_found`. */
  selectAlive(message: Message): Process {
    const { matches, text } = readSelector(message);
    for (const process of this.#processes) if (process.isAlive && matches(process)) return process;
    throw notFound(text);
  }

  #forget(max: number): void {
    const oldest = performance.now() - endedKeptMs;
    while (this.#ended.length > max || (this.#ended[0] && this.#ended[0].atMs < oldest)) this.#ended.shift();
  }
}

function readSelector(message: Message): {
  matches: (one: { pid: number; tag: string | undefined }) => boolean;
  text: string;
} {
  const selector = messageField(message, 'process') ?? {};
  const tag = stringField(selector, 'tag');
  if (tag !== undefined) return { matches: one => one.tag === tag, text: `tag '${tag}'` };
  const pid = uint32Field(selector, 'pid');
  if (pid === undefined) throw new AtollError('invalid', 'process must name a pid or a tag');
  return { matches: one => one.pid === pid, text: `pid ${pid}` };
}

const notFound = (text: string) => new AtollError('not_found', `process with ${text} not found`);
