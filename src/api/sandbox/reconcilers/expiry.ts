import { messageOf } from '../../../base/error.ts';
import { createFairSemaphore } from '../../../base/concurrency/fair-semaphore.ts';
import { forEachParallel } from '../../../base/concurrency/parallel.ts';
import type { DurablePauses } from '../../blob/rules/pauses.ts';
import { pauseNotStored } from '../rules/durability.ts';
import { memoryUnavailable } from '../rules/memory.ts';
import type { PauseWork } from '../workflows/pause/steps.ts';
import { pauseRunning } from '../workflows/pause/pause.ts';
import { microsPerSecond } from '../../../base/clock.ts';
import { endsDue, sandboxesDue } from '../store/read.ts';
import { expireSandbox, setSandboxEnd } from '../store/state.ts';
import { killSandboxWorkflow } from '../workflows/kill-steps.ts';
import { AtollError } from '../../../base/error.ts';
import type { SandboxFacts } from '../record.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Db } from '../../database/db.ts';
import type { SandboxWork } from '../workflows/run.ts';
import type { Log } from '../../../base/telemetry/log.ts';

/**
 * How often expiry looks, milliseconds. It reads the clock each time instead of sleeping until the next end, so that it
 * also notices at once when the clock is set.
 */
export const expiryIntervalMs = 250;
/** Sandboxes handled in one round. */
const dueMax = 500;
const endsAtOnce = 8;
/** A pause keeps a core busy. */
const pausesAtOnce = 4;
/** Some take minutes: in addition, this many may be of teams that have no other under way. */
const spare = 2;
/** How long a sandbox that could not be paused runs on before the next attempt. */
const pauseRetrySeconds = 15;

/** What automatic pauses need. */
type AutoPauseDeps = PauseWork & { durablePauses: DurablePauses | null };

/** Work that rounds begin without waiting for it. `settled` waits for what is under way. */
type Rounds = { round(): Promise<void>; settled(): Promise<void> };

/** Both of the following: asks once for what is due, which mostly is nothing, and begins only that. */
export function ends(deps: AutoPauseDeps): Rounds {
  const [killing, pausing] = [expiries(deps), autoPauses(deps)];
  return {
    async round() {
      const due = await endsDue(deps.db, deps.clock());
      // A failure of one must not stop the other.
      const rounds = [...(due.has('kill') ? [killing] : []), ...(due.has('pause') ? [pausing] : [])];
      const outcomes = await Promise.allSettled(rounds.map(({ round }) => round()));
      for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
    },
    settled: async () => void (await Promise.all([killing.settled(), pausing.settled()])),
  };
}

/**
 * Ends sandboxes whose time is over. All are cut off at once, whatever delays the removal of others: e.g. a snapshot
 * that was requested earlier may take minutes, and no round waits for that.
 */
export function expiries(deps: SandboxWork): Rounds {
  const { db, clock, busy, directory, log } = deps;
  const semaphore = createFairSemaphore(endsAtOnce, spare);
  const underWay = new Set<Promise<void>>();
  const end = (sandbox: SandboxFacts, isCut: () => void) =>
    busy.while(sandbox.executionId, async () => {
      const marked = await expireSandbox(db, sandbox, clock(), busy.replicaId);
      if (!marked) return;
      directory.close(marked);
      isCut();
      await semaphore.run(marked.teamId, () => killSandboxWorkflow(deps, marked, 'timed_out'));
    });
  return {
    async round() {
      await forEachParallel(await sandboxesDue(db, 'kill', clock(), dueMax), dueMax, async sandbox => {
        const cut = Promise.withResolvers<void>();
        const { sandboxId } = sandbox;
        const ending = end(sandbox, cut.resolve)
          .catch((error: unknown) =>
            log.warn('a sandbox whose time is over is removed later', { sandboxId, error: messageOf(error) }),
          )
          .finally(() => underWay.delete(ending));
        underWay.add(ending);
        await Promise.race([cut.promise, ending]);
      });
    },
    async settled() {
      await Promise.all(underWay);
    },
  };
}

/**
 * Pauses sandboxes whose time is over, if they are to be paused then. A pause may take minutes: each round begins those
 * that are due and waits for none, so that a slow one delays only itself. `settled` waits for those under way.
 */
export function autoPauses(deps: AutoPauseDeps): Rounds {
  const semaphore = createFairSemaphore(pausesAtOnce, spare);
  const underWay = new Map<string, Promise<void>>();
  return {
    async round() {
      for (const sandbox of await sandboxesDue(deps.db, 'pause', deps.clock(), dueMax)) {
        const { executionId, sandboxId } = sandbox;
        if (underWay.has(executionId)) continue;
        const pause = semaphore
          .run(sandbox.teamId, () => autoPause(deps, sandbox))
          .catch((error: unknown) =>
            deps.log.warn('a pause that is due will be tried again', { sandboxId, error: messageOf(error) }),
          )
          .finally(() => underWay.delete(executionId));
        underWay.set(executionId, pause);
      }
    },
    async settled() {
      await Promise.all(underWay.values());
    },
  };
}

/**
 * A sandbox whose memory can't be kept after all is paused with its files: it must not run on, and the files must not
 * be lost. A sandbox that can't be paused at all runs on until it can.
 */
async function autoPause(deps: AutoPauseDeps, sandbox: SandboxFacts): Promise<void> {
  const { sandboxId, autoPauseMemory } = sandbox;
  try {
    await pauseDue(deps, sandbox, autoPauseMemory);
  } catch (error) {
    if (!autoPauseMemory || !(error instanceof AtollError) || error.detail !== memoryUnavailable)
      return postpone(deps, sandbox, error);
    deps.log.warn('a sandbox is paused with its files alone, because its memory could not be kept', {
      sandboxId,
      error: error.message,
    });
    await pauseDue(deps, sandbox, false).catch(again => postpone(deps, sandbox, again));
  }
}

async function pauseDue(deps: AutoPauseDeps, sandbox: SandboxFacts, memory: boolean): Promise<void> {
  try {
    await pauseRunning(deps, sandbox, { memory, durable: durableFor(deps, sandbox) }, deps.clock());
  } catch (error) {
    // It is paused, on its machine.
    if (!(error instanceof AtollError) || error.detail !== pauseNotStored) throw error;
  }
}

/**
 * An automatic pause does not wait for an unusable store: it stays on its machine. So does one of a sandbox with
 * volumes, whatever its create asked for.
 */
function durableFor(
  { durablePauses }: AutoPauseDeps,
  { autoPauseDurability, volumeMounts }: SandboxFacts,
): DurablePauses | null {
  return autoPauseDurability === 'cluster' && volumeMounts.length === 0 && durablePauses?.isUsable
    ? durablePauses
    : null;
}

async function postpone(
  { clock, db, log }: { clock: Clock; db: Db; log: Log },
  sandbox: SandboxFacts,
  error: unknown,
): Promise<void> {
  const nowUs = clock();
  const left = await setSandboxEnd(db, sandbox, {
    endAtUs: nowUs + pauseRetrySeconds * microsPerSecond,
    onlyLater: true,
    nowUs,
  });
  // Somebody has ended it meanwhile.
  if (!left) return;
  log.error('a sandbox whose time is over could not be paused and runs on', {
    sandboxId: sandbox.sandboxId,
    error: messageOf(error),
  });
}
