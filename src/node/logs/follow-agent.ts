import { messageOf } from '../../base/error.ts';
import type { Log } from '../../base/log.ts';
import { agentPort, controlTokenHeader } from '../../protocol/agent.ts';
import type { SandboxLogEntry } from '../../protocol/logs.ts';
import { createHttpReader } from '../agent-http.ts';
import { dial } from '../network/dial.ts';
import type { NetworkNamespace } from '../native/netns.ts';
import { readAgentLine } from './agent-line.ts';
import type { LogStore } from './log-store.ts';
import { withoutSecrets } from './policy-secrets.ts';
import type { AgentPlace } from './segments.ts';

/** A sandbox that lives for a moment only is never asked. */
const firstDelayMs = 20;
/** Between two attempts: an agent that was killed is there again soon, one that nobody can revive is not worth much. */
const retryMsMin = 200;
const retryMsMax = 30_000;
/** What is read of one sandbox in a second: beyond, it waits in its connection, and the agent drops what is too much. */
const bytesPerSecond = 256 << 10;
const entriesPerSecond = 1000;
const lineBytesMax = 64 << 10;
/** An open connection wakes the agent every second. Where it has nothing to tell for this long, it is let be, */
const quietMs = 5_000;
/** and asked again when somebody comes to the sandbox, when somebody reads its log, and this often. */
const askEveryMs = 10 * 60_000;
/** How long an agent that is asked may take: it may be frozen. */
const answerMsMax = 200;

export type Followed = {
  sandboxId: string;
  namespace: NetworkNamespace;
  controlToken: string;
  /** What must not be told, see `secretsOf`; asked for each time, as policies change. */
  secrets(): readonly string[];
  /** When it was created, for one that is new: what is older is another's, of which its memory was taken. */
  createdMs: number | undefined;
};

/** Puts what the agent of a sandbox tells into the store, for as long as it lasts. */
export type Follower = {
  /** Somebody has come to the sandbox: it will have something to tell. */
  wake(): void;
  /** Resolves when what the agent has to tell now is in the store, or it did not answer soon. */
  catchUp(): Promise<void>;
  /** Takes what has come, and stops. From then on nothing holds the sandbox's network. */
  stop(): Promise<void>;
};

export type FollowTimes = { quietMs: number; askEveryMs: number };

export function followAgent(followed: Followed, { store, log, times = { quietMs, askEveryMs } }: { store: LogStore; log: Log; times?: FollowTimes }): Follower {
  const stopping = new AbortController();
  const { signal } = stopping;
  let connection: { terminate(): void } | undefined;
  let resting: AbortController | undefined;
  let place: AgentPlace | undefined;
  let secondBegan = 0;
  let bytesLeft = bytesPerSecond;
  let entriesLeft = entriesPerSecond;
  const nextSecond = () => {
    const now = performance.now();
    if (now - secondBegan >= 1000) [secondBegan, bytesLeft, entriesLeft] = [now, bytesPerSecond, entriesPerSecond];
  };

  /**
   * One connection, to its end: the agent's, or ours when it has told nothing for a while. Answers whether that was why.
   * `once`: until the agent has told what there is.
   */
  const stream = async ({ once }: { once: boolean }): Promise<'quiet' | 'ended'> => {
    const { namespace, controlToken } = followed;
    const closed = Promise.withResolvers<'quiet' | 'ended'>();
    const fd = await dial(namespace, agentPort, signal);
    if (signal.aborted) return namespace.closeSocket(fd), 'ended';
    const query = new URLSearchParams({ ...(place && { epoch: place.epoch, after: String(place.number) }), ...(once && { once: '1' }) }).toString();
    const request = Buffer.from(
      `GET /logs${query && `?${query}`} HTTP/1.1\r\nhost: agent\r\n${controlTokenHeader}: ${controlToken}\r\n${once ? 'connection: close\r\n' : ''}\r\n`,
    );
    let heardAt = performance.now();
    const lines = createLines(text => take(text));
    const reader = createHttpReader(lines);
    const take = (text: string) => {
      const line = readAgentLine(text, Date.now());
      if (line === undefined) throw new Error('the agent sent what is no log');
      if ('epoch' in line) {
        if (line.epoch !== place?.epoch) place = { epoch: line.epoch, number: 0 };
        return;
      }
      if (place === undefined || line.number <= place.number) return;
      const missing = place.number === 0 ? 0 : line.number - place.number - 1;
      place = { epoch: place.epoch, number: line.number };
      if (followed.createdMs !== undefined && line.entry.timestampMs < followed.createdMs) return;
      if (missing > 0 && entriesLeft > 0) {
        entriesLeft--;
        store.note(followed.sandboxId, 'warn', 'agent', `${missing} entries were dropped: there were too many at a time`, { event: 'dropped', entries: String(missing) });
      }
      if (entriesLeft-- > 0) store.add(followed.sandboxId, cleaned(line.entry, followed.secrets()), place);
      else if (entriesLeft === -1) store.note(followed.sandboxId, 'warn', 'agent', `entries are dropped: there are more than ${entriesPerSecond} a second`, { event: 'dropped' });
    };
    const socket = await Bun.connect({
      fd,
      socket: {
        open: (own: { write(data: Uint8Array): number }) => void own.write(request),
        data(own: { terminate(): void; pause(): void; resume(): void }, bytes: Buffer) {
          heardAt = performance.now();
          nextSecond();
          try {
            reader.take(bytes);
            if (reader.failure() !== undefined) own.terminate();
          } catch (error) {
            closed.reject(error);
            own.terminate();
          }
          bytesLeft -= bytes.length;
          if (bytesLeft > 0) return;
          own.pause();
          const goOn = () => {
            nextSecond();
            own.resume();
          };
          setTimeout(goOn, Math.max(0, secondBegan + 1000 - heardAt)).unref();
        },
        close: () => closed.resolve('ended'),
        error: () => closed.resolve('ended'),
      },
    } as unknown as Parameters<typeof Bun.connect>[0]);
    const patienceMs = once ? answerMsMax : times.quietMs;
    const watch = setInterval(() => {
      if (bytesLeft > 0 && performance.now() - heardAt >= patienceMs) closed.resolve('quiet');
    }, patienceMs);
    watch.unref();
    if (!once) connection = socket;
    const giveUp = () => closed.resolve('ended');
    signal.addEventListener('abort', giveUp);
    if (signal.aborted) giveUp();
    try {
      return await closed.promise;
    } finally {
      clearInterval(watch);
      signal.removeEventListener('abort', giveUp);
      socket.terminate();
      if (!once) connection = undefined;
    }
  };
  const tried = (options: { once: boolean }) =>
    stream(options).catch((error: unknown) => {
      log.debug('the agent of a sandbox does not tell its log', { sandboxId: followed.sandboxId, error: messageOf(error) });
      return 'ended' as const;
    });

  /** Until there is something to tell again, or may be. */
  const rest = async () => {
    const known = place?.number;
    do {
      resting = new AbortController();
      await pause(times.askEveryMs, AbortSignal.any([signal, resting.signal]));
      if (resting.signal.aborted || signal.aborted) return;
      await tried({ once: true });
    } while (place?.number === known);
  };

  const ended = (async () => {
    await pause(firstDelayMs, signal);
    if (followed.createdMs === undefined && !signal.aborted) place = await store.place(followed.sandboxId);
    for (let delayMs = retryMsMin; !signal.aborted; delayMs = Math.min(delayMs * 2, retryMsMax)) {
      const startedAt = performance.now();
      const quiet = (await tried({ once: false })) === 'quiet';
      if (quiet || performance.now() - startedAt > retryMsMax) delayMs = retryMsMin;
      if (quiet) await rest();
      else await pause(delayMs, signal);
      resting = undefined;
    }
  })();

  return {
    wake: () => resting?.abort(),
    async catchUp() {
      if (resting && !signal.aborted) await tried({ once: true });
    },
    async stop() {
      // What the agent said before whoever stops it was told is in the connection already. It is read between two turns of
      // the loop: the first may come before anything is.
      for (let turn = 0; connection && turn < 2; turn++) await new Promise(resolve => setImmediate(resolve));
      stopping.abort();
      await ended;
    },
  };
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise(resolve => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done);
  });
}

function cleaned(entry: SandboxLogEntry, secrets: readonly string[]): SandboxLogEntry {
  if (secrets.length === 0) return entry;
  const fields = Object.entries(entry.fields).map(([name, text]) => [name, withoutSecrets(text, secrets)]);
  return { ...entry, message: withoutSecrets(entry.message, secrets), fields: Object.fromEntries(fields) };
}

/** Makes lines of parts. Throws where one is longer than any agent of ours sends. */
function createLines(onLine: (line: string) => void): (part: Uint8Array) => void {
  let begun = Buffer.alloc(0);
  let begunBytes = 0;
  // However small the parts are, no byte is looked at again.
  const add = (piece: Buffer) => {
    const bytes = begunBytes + piece.length;
    if (bytes > lineBytesMax) throw new Error('the agent sent too long a line');
    if (bytes > begun.length) begun = Buffer.concat([begun.subarray(0, begunBytes)], Math.min(bytes * 2, lineBytesMax));
    piece.copy(begun, begunBytes);
    begunBytes = bytes;
  };
  return part => {
    const bytes = Buffer.from(part.buffer, part.byteOffset, part.byteLength);
    let from = 0;
    for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, from)) {
      add(bytes.subarray(from, end));
      onLine(begun.toString('utf8', 0, begunBytes));
      begunBytes = 0;
      from = end + 1;
    }
    add(bytes.subarray(from));
  };
}
