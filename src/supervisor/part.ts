import { AtollError, messageOf } from '../base/error.ts';
import type { Log } from '../base/log.ts';
import { fromWire, toWire, type WireError } from '../wire/error.ts';
import { type FromPart, packed, readFromPart, type ToPart } from './messages.ts';

/** How often the beats are looked at. */
const lookMs = 1_000;
/** How many looks a part may take to load before its first beat. */
const loadLooksMax = 60;
/** How long to wait before a part that has ended is started again; doubled each time until one has run for a while. Milliseconds. */
const restartDelay = { first: 100, max: 5_000, steadyAfter: 30_000 } as const;
/** A part that has ended so often in a row without having run for a while will not by itself. */
const usualEndsMax = 20;
/** How long a part may take to end in order. Milliseconds. */
const stopTimeoutMs = 25_000;

export type PartName = 'node' | 'api' | 'edge';
/** Why a part was started again. */
export type RestartReason = 'ended' | 'stalled';

export type PartOptions<About> = {
  name: PartName;
  /** The program and its arguments. */
  command: string[];
  environment: Record<string, string>;
  /** What it is started with, each time. */
  settings: () => unknown;
  /** How many looks (seconds) may pass without a beat before it is ended: its event loop stands still. */
  stallLooksMax: number;
  /** How often in a row it may end before it is given up. */
  endsMax?: number;
  log: Log;
  onPhase(text: string): void;
  /** Does what the part asks for. */
  onAsk(what: string, value: unknown): Promise<void>;
  /** It serves, for the first time or again. */
  onReady(about: About): void;
  onRestart(reason: RestartReason): void;
  /** It does not stay, and will not be started again. */
  onGivenUp(error: AtollError): void;
};

/** A process of the platform that is watched and started again. */
export type Part<About> = {
  /** The first time that it serves. Fails with what its start failed with. */
  ready: Promise<About>;
  update(update: unknown): void;
  stop(): Promise<void>;
};

type Child = { send(message: ToPart): void; kill(signal: NodeJS.Signals): void; exited: Promise<number> };

/** Starts a part, and starts it again, alone, whenever it ends or its event loop stands still. */
export function startPart<About>(options: PartOptions<About>): Part<About> {
  const { name, log } = options;
  const ready = Promise.withResolvers<About>();
  ready.promise.catch(() => {}); // whoever waits for it may come later
  let child: Child | undefined;
  let isStopping = false;
  let wasReady = false;
  let endsInARow = 0;
  let delayMs: number = restartDelay.first;
  let waiting: Timer | undefined;

  launch();
  return {
    ready: ready.promise,
    update: update => child?.send({ kind: 'update', update: packed(update) }),
    async stop() {
      isStopping = true;
      clearTimeout(waiting);
      if (!child) return;
      child.send({ kind: 'stop' });
      const killer = setTimeout(() => child?.kill('SIGKILL'), stopTimeoutMs);
      await child.exited;
      clearTimeout(killer);
    },
  };

  function launch(): void {
    const startedAt = performance.now();
    let looksSinceBeat = 0;
    let hasBeaten = false;
    let failure: WireError | undefined;
    let reason: RestartReason = 'ended';
    const current = spawn(options, {
      onMessage(message) {
        looksSinceBeat = 0;
        hasBeaten = true;
        if (message.kind === 'phase') options.onPhase(message.text);
        else if (message.kind === 'failed') failure = message.error;
        else if (message.kind === 'ask') void answer(message, current);
        else if (message.kind === 'ready') {
          wasReady = true;
          options.onReady(message.about as About);
          ready.resolve(message.about as About);
        }
      },
      onExit(how) {
        clearInterval(looking);
        if (child === current) child = undefined;
        if (isStopping) return ready.reject(new AtollError('canceled', 'The platform was stopped'));
        ended(how, reason, failure, performance.now() - startedAt);
      },
    });
    child = current;
    void Promise.try(options.settings).then(
      settings => current.send({ kind: 'start', settings: packed(settings) }),
      (error: unknown) => {
        failure = toWire(error);
        current.kill('SIGKILL');
      },
    );
    // Looks are counted and not time: where this process itself did not get the processor, the part did not either.
    const looking = setInterval(() => {
      if (++looksSinceBeat <= (hasBeaten ? options.stallLooksMax : loadLooksMax)) return;
      log.error('a process of the platform stands still and is ended', { process: name, seconds: looksSinceBeat });
      reason = 'stalled';
      current.kill('SIGKILL');
    }, lookMs);
  }

  function ended(how: string, reason: RestartReason, failure: WireError | undefined, lifeMs: number): void {
    const cause = failure && fromWire(failure);
    // What keeps it from starting at all is the operator's to know.
    if (!wasReady) return ready.reject(cause ?? new AtollError('internal', `The platform's ${name} ended while it started (${how})`));
    if (lifeMs > restartDelay.steadyAfter) {
      endsInARow = 0;
      delayMs = restartDelay.first;
    }
    endsInARow++;
    options.onRestart(reason);
    if (endsInARow > (options.endsMax ?? usualEndsMax)) {
      return options.onGivenUp(new AtollError('internal', `The platform's ${name} has ended ${endsInARow} times in a row and is not started again${cause ? `: ${messageOf(cause)}` : ''}`));
    }
    log.error('a process of the platform has ended and is started again', { process: name, how, ...(cause && { error: cause.message }), afterMs: delayMs });
    waiting = setTimeout(launch, delayMs);
    delayMs = Math.min(delayMs * 2, restartDelay.max);
  }

  async function answer({ id, what, value }: FromPart & { kind: 'ask' }, asker: Child): Promise<void> {
    const error = await options.onAsk(what, value).then(() => undefined, toWire);
    asker.send({ kind: 'answer', id, ...(error && { error }) });
  }
}

function spawn({ command, environment }: Pick<PartOptions<unknown>, 'command' | 'environment'>, handlers: { onMessage(message: FromPart): void; onExit(how: string): void }): Child {
  const child = Bun.spawn(command, {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: environment,
    cwd: '/',
    serialization: 'json',
    ipc(message: unknown) {
      const understood = readFromPart(message);
      if (understood) handlers.onMessage(understood);
    },
    onExit: (_, exitCode, signal) => handlers.onExit(signal === null ? `exit code ${exitCode}` : `signal ${signal}`),
  });
  return {
    send(message) {
      try {
        child.send(message);
      } catch {
        // It has just ended, which is heard by its exit.
      }
    },
    kill: signal => child.kill(signal),
    exited: child.exited,
  };
}
