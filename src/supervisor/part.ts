import { AtollError, messageOf } from '../base/error.ts';
import { fromWire, toWire } from '../wire/error.ts';
import { type FromPart, packed } from './messages.ts';
import {
  endedInOrder,
  type PartProcess,
  type ProcessEnd,
  type ProcessOptions,
  type RestartReason,
  runPartProcess,
} from './part-process.ts';

/** Wait before an ended part is started again, milliseconds. It doubles until one run lasts `steadyAfter`. */
const restartDelay = { first: 100, max: 5_000, steadyAfter: 30_000 } as const;
/** Ends in a row, none after a steady run, at which the supervisor gives up. */
const usualEndsMax = 20;
/** Questions that one process may ask at a time: a part has a handful, most of them at its start. */
const asksMax = 32;
/** Longest time for a part to end in order, milliseconds. */
const stopTimeoutMs = 25_000;

/** One part, and whom to notify about it. */
export type PartOptions<About> = ProcessOptions & {
  /** Ends in a row after which the supervisor gives up. */
  endsMax?: number;
  onPhase(text: string): void;
  /** Does what the part asks for, and answers its questions. */
  onAsk(what: string, value: unknown): Promise<unknown>;
  /**
   * Reads what the part reports once it serves. Throws for anything that no sound part reports: it may have been taken
   * over.
   */
  readAbout(said: unknown): About;
  /** Called when it serves, for the first time or again. */
  onReady(about: About): void;
  /** Called when a process of it has ended and the next one has not begun. */
  onEnd?(): void;
  onRestart(reason: RestartReason): void;
  /** Called when it keeps ending and will not be started again. */
  onGivenUp(error: AtollError): void;
};

/** A process of the platform that is watched and restarted. */
export type Part<About> = {
  /** Settles when it serves for the first time. Fails with the error of its start. */
  ready: Promise<About>;
  update(update: unknown): void;
  stop(): Promise<void>;
};

/** Starts a part, and starts it again, alone, whenever it ends or its event loop stands still. */
export function startPart<About>(options: PartOptions<About>): Part<About> {
  const { name, log } = options;
  const ready = Promise.withResolvers<About>();
  ready.promise.catch(() => {}); // the one who waits for it may come later
  let child: PartProcess | undefined;
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
      await child.ended;
      clearTimeout(killer);
    },
  };

  function launch(): void {
    child = runPartProcess(options, {
      onMessage: hearing(options, about => {
        wasReady = true;
        options.onReady(about);
        ready.resolve(about);
      }),
      onEnd(end) {
        child = undefined;
        options.onEnd?.();
        if (isStopping) {
          ready.reject(new AtollError('canceled', 'The platform was stopped'));
          if (end.how !== endedInOrder) log.warn('a process of the platform did not stop in order', factsOf(name, end));
        }
        // The operator has to learn why it can't start at all.
        else if (!wasReady) ready.reject(startError(name, end));
        else startAgain(end);
      },
    });
  }

  function startAgain(end: ProcessEnd): void {
    const { reason, failure, lifeMs } = end;
    const cause = failure && fromWire(failure);
    if (lifeMs > restartDelay.steadyAfter) {
      endsInARow = 0;
      delayMs = restartDelay.first;
    }
    endsInARow++;
    options.onRestart(reason);
    if (endsInARow > (options.endsMax ?? usualEndsMax))
      return options.onGivenUp(notStayingError(name, endsInARow, cause));
    const facts = { ...factsOf(name, end), afterMs: delayMs };
    log.error('a process of the platform has ended and is started again', facts);
    waiting = setTimeout(relaunch, delayMs);
    delayMs = Math.min(delayMs * 2, restartDelay.max);
  }

  function relaunch(): void {
    try {
      launch();
    } catch (error) {
      // The host has no memory or descriptors left for a process now, and may have some later.
      startAgain({ how: 'not started', reason: 'ended', failure: toWire(error), lifeMs: 0 });
    }
  }
}

/** Handles the messages of one process. `serves` is called with the process's report when it serves. */
function hearing<About>(options: PartOptions<About>, serves: (about: About) => void) {
  const answer = answeringBy(options);
  return (message: FromPart, from: PartProcess): void => {
    if (message.kind === 'phase') return options.onPhase(message.text);
    if (message.kind === 'ask') return void answer(message, from);
    const about = message.kind === 'ready' ? aboutOf(message.about, from, options) : undefined;
    if (about) serves(about.said);
  };
}

/** A part's report of itself; undefined where no sound part says that, which ends it. */
function aboutOf<About>(
  said: unknown,
  from: PartProcess,
  { name, log, readAbout }: Pick<PartOptions<About>, 'name' | 'log' | 'readAbout'>,
): { said: About } | undefined {
  try {
    return { said: readAbout(said) };
  } catch (error) {
    const facts = { process: name, error: messageOf(error) };
    log.error('a process of the platform says of itself what none does, and is ended', facts);
    from.kill('SIGKILL');
    return undefined;
  }
}

/** Answers the questions of one process, at most as many at a time as any part needs. */
function answeringBy({ onAsk }: Pick<PartOptions<unknown>, 'onAsk'>) {
  let underWay = 0;
  return async ({ id, what, value }: FromPart & { kind: 'ask' }, asker: PartProcess): Promise<void> => {
    if (underWay >= asksMax) {
      const error = new AtollError('unavailable', `${asksMax} things are asked for already, which is the most`);
      return asker.send({ kind: 'answer', id, error: toWire(error) });
    }
    underWay++;
    // Where many come at once, the first would otherwise be carried out, at full cost, before the others are counted.
    await new Promise(resolve => setImmediate(resolve));
    const said = await onAsk(what, value).then(
      answered => (answered === undefined ? {} : { value: answered }),
      (error: unknown) => ({ error: toWire(error) }),
    );
    underWay--;
    asker.send({ kind: 'answer', id, ...said });
  };
}

/** For the log. */
function factsOf(name: string, { how, failure }: ProcessEnd) {
  return { process: name, how, ...(failure && { error: fromWire(failure).message }) };
}

function startError(name: string, { failure, how }: ProcessEnd): AtollError {
  if (failure) return fromWire(failure);
  return new AtollError('internal', `The platform's ${name} ended while it started (${how})`);
}

function notStayingError(name: string, ends: number, cause: AtollError | undefined): AtollError {
  const why = cause ? `: ${messageOf(cause)}` : '';
  return new AtollError(
    'internal',
    `The platform's ${name} has ended ${ends} times in a row and is not started again${why}`,
  );
}
