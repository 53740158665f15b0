import { allocatorSettings } from '../base/process/allocator.ts';
import type { Log } from '../base/telemetry/log.ts';
import { toWire, type WireError } from '../wire/error.ts';
import { closeFile, streamPair } from '../wire/files.ts';
import { channelOver, partMessageBytesMax } from './channel.ts';
import { type FromPart, packed, readFromPart, type ToPart } from './messages.ts';

/** Interval at which the supervisor checks the beats. */
const lookMs = 1_000;
/** Checks that a part may take to load before its first beat. */
const loadLooksMax = 60;
/** How long a process may go on after its channel has closed, as nobody hears it any more. Milliseconds. */
const silencedMs = 1_000;

/** The processes that the supervisor starts. */
export type PartName = 'node' | 'api' | 'edge' | 'gate';
/** Why a part was started again. */
export type RestartReason = 'ended' | 'stalled';

/** One process of a part, and how to watch it. */
export type ProcessOptions = {
  name: PartName;
  /** The program and its arguments, called for at each start. */
  command: () => string[];
  environment: Record<string, string>;
  /** Its settings, called for at each start. */
  settings: () => unknown;
  /** Checks (one per second) without a beat after which it is killed, because its event loop stands still. */
  stallLooksMax: number;
  log: Log;
};

/** How a process ends that has closed everything in order. */
export const endedInOrder = 'exit code 0';

/** How a process ended, for the log; its own report of the failure; and its lifetime, milliseconds. */
export type ProcessEnd = { how: string; reason: RestartReason; failure: WireError | undefined; lifeMs: number };

/** A process of a part. Messages to an ended process are dropped. */
export type PartProcess = {
  send(message: ToPart): void;
  kill(signal: NodeJS.Signals): void;
  /** Settles when it has ended and `onEnd` was called. */
  ended: Promise<void>;
};

/** Starts one process of a part, gives it its settings, and kills it when its beats stop. */
export function runPartProcess(
  options: ProcessOptions,
  handlers: { onMessage(message: FromPart, from: PartProcess): void; onEnd(end: ProcessEnd): void },
): PartProcess {
  const startedAt = performance.now();
  let looksSinceBeat = 0;
  let hasBeaten = false;
  let isReady = false;
  let failure: WireError | undefined;
  let reason: RestartReason = 'ended';
  const child = spawn(options, {
    onMessage(message) {
      looksSinceBeat = 0;
      hasBeaten = true;
      if (message.kind === 'failed') failure = message.error;
      if (message.kind === 'failed' || (message.kind === 'ready' && isReady)) return;
      // Only the first report counts: later ones may come from somebody who took the process over.
      isReady ||= message.kind === 'ready';
      handlers.onMessage(message, child);
    },
    onExit(how) {
      clearInterval(looking);
      handlers.onEnd({ how, reason, failure, lifeMs: performance.now() - startedAt });
    },
  });
  void Promise.try(options.settings).then(
    settings => child.send({ kind: 'start', settings: packed(settings) }),
    (error: unknown) => {
      failure = toWire(error);
      child.kill('SIGKILL');
    },
  );
  // Counts checks instead of time: when this process did not get the processor, the part did not either.
  const looking = setInterval(() => {
    if (++looksSinceBeat <= (hasBeaten ? options.stallLooksMax : loadLooksMax)) return;
    const facts = { process: options.name, seconds: looksSinceBeat };
    options.log.error('a process of the platform stands still and is ended', facts);
    reason = 'stalled';
    child.kill('SIGKILL');
  }, lookMs);
  return child;
}

function spawn(
  { command, environment }: Pick<ProcessOptions, 'command' | 'environment'>,
  handlers: { onMessage(message: FromPart): void; onExit(how: string): void },
): PartProcess {
  const [own, its] = streamPair();
  const ended = Promise.withResolvers<void>();
  const child = Bun.spawn(command(), {
    // The last is `partDescriptor`.
    stdio: ['ignore', 'inherit', 'inherit', its],
    env: { ...allocatorSettings, ...environment },
    cwd: '/',
    onExit(_, exitCode, signal) {
      clearTimeout(silenced);
      handlers.onExit(signal === null ? `exit code ${exitCode}` : `signal ${signal}`);
      ended.resolve();
    },
  });
  closeFile(its);
  let silenced: Timer | undefined;
  const channel = channelOver(own, partMessageBytesMax);
  void channel.then(from =>
    from.listen({
      message(text) {
        const understood = readFromPart(text);
        if (understood) handlers.onMessage(understood);
      },
      // Most processes have ended by then, but not one that sent an invalid or overlong message.
      closed: () => void (silenced = setTimeout(() => child.kill('SIGKILL'), silencedMs)),
    }),
  );
  return {
    send: message => void channel.then(to => to.send(JSON.stringify(message))),
    kill: signal => child.kill(signal),
    ended: ended.promise,
  };
}
