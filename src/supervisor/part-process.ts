import { allocatorSettings } from '../base/process/allocator.ts';
import type { Log } from '../base/telemetry/log.ts';
import { toWire, type WireError } from '../wire/error.ts';
import { closeFile, streamPair } from '../wire/files.ts';
import { channelOver, partMessageBytesMax } from './channel.ts';
import { type FromPart, packed, readFromPart, type ToPart } from './messages.ts';

/** Interval at which the supervisor looks at the beats. */
const lookMs = 1_000;
/** Looks that a part may take to load before its first beat. */
const loadLooksMax = 60;
/** How long a process may go on whose channel has closed: nobody hears it any more. Milliseconds. */
const silencedMs = 1_000;

/** The processes that the supervisor starts. */
export type PartName = 'node' | 'api' | 'edge' | 'gate';
/** Why a part was started again. */
export type RestartReason = 'ended' | 'stalled';

/** What one process of a part is, and how it is watched. */
export type ProcessOptions = {
  name: PartName;
  /** The program and its arguments, asked for at each start. */
  command: () => string[];
  environment: Record<string, string>;
  /** Its settings, asked for at each start. */
  settings: () => unknown;
  /** Looks (seconds) without a beat after which it is killed: its event loop stands still. */
  stallLooksMax: number;
  log: Log;
};

/** How a process has ended that stopped what it had open. */
export const endedInOrder = 'exit code 0';

/** How a process has ended, for the log; what it said of its failure; and how long it lived, milliseconds. */
export type ProcessEnd = { how: string; reason: RestartReason; failure: WireError | undefined; lifeMs: number };

/** A process of a part. Nothing is said to one that has ended. */
export type PartProcess = {
  send(message: ToPart): void;
  kill(signal: NodeJS.Signals): void;
  /** When it has ended and `onEnd` was called. */
  ended: Promise<void>;
};

/** Starts one process of a part, gives it its settings, and kills it when its beats stay away. */
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
      // What it says of itself later it may have been made to say.
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
  // Looks are counted and not time: where this process itself did not get the processor, the part did not either.
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
      // Most have ended then. One that said what can't be a message, or too long a one, has not.
      closed: () => void (silenced = setTimeout(() => child.kill('SIGKILL'), silencedMs)),
    }),
  );
  return {
    send: message => void channel.then(to => to.send(JSON.stringify(message))),
    kill: signal => child.kill(signal),
    ended: ended.promise,
  };
}
