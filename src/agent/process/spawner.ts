import { AtollError } from '../../base/error.ts';
import type { Log } from '../../base/telemetry/log.ts';
import type { Native } from '../native.ts';
import { endingOfWaitStatus, type Ending } from './end-status.ts';

/** What `native/init.c` gives every agent: a socket for requests, and the read end of a pipe for replies. */
const requestsFd = 4;
const repliesFd = 5;

/** Kinds of requests and answers; `native/spawner.c` has the same numbers. */
const requestStart = 1;
const requestSignal = 2;
const requestLook = 3;
const requestName = 4;
const replyStarted = 1;
const replyFailed = 2;
const replyEnded = 3;
const replyRuns = 4;
const headWords = 8;
const replyBytes = 12;

/** Wait before a request that found no room is sent again, ms. */
const retryMs = 2;

/** Bits of a program's flags (`native/spawner.h`): it leads a session, not only a process group. */
export const sessionOfItsOwn = 1;
/** Its only descriptor is the master of its terminal. */
export const inTerminal = 2;

/** A program to start, fully resolved. */
type ProgramRequest = {
  argv: string[];
  environment: Record<string, string>;
  uid: number;
  gid: number;
  groups: number[];
  flags: number;
  cwd: string;
};

/** A program that process 1 has started. */
export type Child = { readonly pid: number; readonly ended: Promise<Ending> };

/**
 * Makes process 1 of the sandbox start and signal programs: the agent is too large to copy and so is never their
 * parent.
 */
export type Spawner = {
  /**
   * Starts a program. `descriptors`: its stdout, stderr and perhaps stdin, or the master of its terminal; the caller
   * closes them once this has resolved or thrown. Errors: `rate_limited` if the sandbox can have no more processes,
   * `invalid` for too many or too long arguments.
   */
  start(program: ProgramRequest, descriptors: number[]): Promise<Child>;
  /** A program that an earlier agent started this way; undefined: it has ended. */
  adopt(pid: number): Promise<Child | undefined>;
  /** Signals a program that this agent or an earlier one started; no effect once it has ended. */
  signal(pid: number, number: number): void;
  /** Gives the sandbox the host name that its kernel reports, where process 1 may do that; it may do so once. */
  nameHost(hostname: string): void;
};

type Waiting = { bytes: Uint8Array; descriptors: number[] };

/** The counterpart of `native/spawner.c`. Reads nothing from `replies` before the first start or adoption. */
export function openSpawner(
  native: Pick<Native, 'send'>,
  log: Log,
  replies: () => AsyncIterable<Uint8Array> = () => Bun.file(repliesFd).stream(),
): Spawner {
  const starting = new Map<number, PromiseWithResolvers<Child>>();
  const lookedFor = new Map<number, PromiseWithResolvers<Child | undefined>>();
  const running = new Map<number, PromiseWithResolvers<Ending>>();
  let lastId = 0;
  let listens = false;
  const send = senderBy(native);

  const runs = (pid: number): Child => {
    const ended = Promise.withResolvers<Ending>();
    running.set(pid, ended);
    return { pid, ended: ended.promise };
  };
  const take = (kind: number, about: number, value: number) => {
    if (kind === replyEnded) {
      running.get(about)?.resolve(endingOfWaitStatus(value));
      running.delete(about);
      return;
    }
    if (kind === replyRuns) {
      lookedFor.get(about)?.resolve(value === 0 ? undefined : runs(about));
      lookedFor.delete(about);
      return;
    }
    const waiting = starting.get(about);
    starting.delete(about);
    if (kind === replyFailed) return waiting?.reject(startError(value));
    if (kind === replyStarted) waiting?.resolve(runs(value));
  };
  const listen = async () => {
    if (listens) return;
    listens = true;
    await readReplies(replies(), take);
    // Only when process 1 has given up this agent: the next one gets a channel of its own.
    log.error('process 1 has closed its channel');
    process.exit(1);
  };
  const sendAbout = (kind: number, pid: number, number: number) => {
    const words = new Uint32Array([headWords * 4, kind, pid, number, 0, 0, 0, 0]);
    send({ bytes: new Uint8Array(words.buffer), descriptors: [] });
  };

  return {
    start(program, descriptors) {
      void listen();
      lastId = (lastId % 0xffff_ffff) + 1;
      const started = Promise.withResolvers<Child>();
      starting.set(lastId, started);
      send({ bytes: encodeStart(lastId, program), descriptors });
      return started.promise;
    },
    adopt(pid) {
      void listen();
      const found = Promise.withResolvers<Child | undefined>();
      lookedFor.set(pid, found);
      sendAbout(requestLook, pid, 0);
      return found.promise;
    },
    signal: (pid, number) => sendAbout(requestSignal, pid, number),
    nameHost(hostname) {
      const name = Buffer.from(hostname);
      const head = new Uint32Array([headWords * 4 + name.length, requestName, 0, 0, 0, 0, 0, 0]);
      send({ bytes: Buffer.concat([Buffer.from(head.buffer), name]), descriptors: [] });
    },
  };
}

/** Sends requests in order; retries those that find no room a moment later. */
function senderBy(native: Pick<Native, 'send'>): (request: Waiting) => void {
  const queue: Waiting[] = [];
  const flush = () => {
    for (let next = queue[0]; next; next = queue[0]) {
      const sent = native.send(requestsFd, next.bytes, next.descriptors);
      if (sent < next.bytes.length) {
        if (sent > 0) queue[0] = { bytes: next.bytes.subarray(sent), descriptors: [] };
        setTimeout(flush, retryMs);
        return;
      }
      queue.shift();
    }
  };
  return request => {
    // If an earlier one is waiting, the timer sends this one.
    if (queue.push(request) === 1) flush();
  };
}

async function readReplies(
  replies: AsyncIterable<Uint8Array>,
  take: (kind: number, about: number, value: number) => void,
): Promise<void> {
  let rest = Buffer.alloc(0);
  for await (const chunk of replies) {
    const bytes =
      rest.length > 0 ? Buffer.concat([rest, chunk]) : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
    let at = 0;
    for (; at + replyBytes <= bytes.length; at += replyBytes)
      take(bytes.readUInt32LE(at), bytes.readUInt32LE(at + 4), bytes.readInt32LE(at + 8));
    rest = Buffer.from(bytes.subarray(at));
  }
}

/** Header words, the groups, and zero-terminated texts: the directory, the arguments, the environment. */
function encodeStart(id: number, { argv, environment, uid, gid, groups, flags, cwd }: ProgramRequest): Uint8Array {
  const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
  const texts = Buffer.from(`${[cwd, ...argv, ...variables].join('\0')}\0`);
  const textsAt = (headWords + groups.length) * 4;
  const bytes = Buffer.allocUnsafeSlow(textsAt + texts.length);
  const head = [bytes.length, requestStart, id, flags, uid, gid, groups.length, argv.length];
  new Uint32Array(bytes.buffer, 0, headWords + groups.length).set([...head, ...groups]);
  bytes.set(texts, textsAt);
  return bytes;
}

const noProcess = 11; // EAGAIN
const tooLong = 7; // E2BIG

function startError(errno: number): AtollError {
  if (errno === noProcess) return new AtollError('rate_limited', 'the sandbox can have no more processes');
  if (errno === tooLong) return new AtollError('invalid', 'the command line and its environment are too long');
  return new AtollError('internal', `the process can't be started (errno ${errno})`);
}
