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
 * How often expiry looks. Looking at the clock again each time, instead of sleeping until the next end,
 * also notices at once that the clock was set.
 */
export const expiryIntervalMs = 250;
/** Sandboxes taken up in one round. */
const dueMax = 500;
const endsAtOnce = 8;
/** A pause keeps a core busy. */
const pausesAtOnce = 4;
/** Some take minutes: so many more at a time are of teams of which no other is under way. */
const spare = 2;
/** How long a sandbox that could not be paused goes on before that is tried again. */
const pauseRetrySeconds = 15;

/** What automatic pauses take. */
type AutoPauseDeps = PauseWork & { durablePauses: DurablePauses | null };

/** Work that rounds begin and do not wait for. `settled` waits for what is under way. */
type Rounds = { round(): Promise<void>; settled(): Promise<void> };

/** Both of the following: asks once for what is due, which mostly is nothing, and begins just that. */
export function ends(deps: AutoPauseDeps): Rounds {
  const [killing, pausing] = [expiries(deps), autoPauses(deps)];
  return {
    async round() {
      const due = await endsDue(deps.db, deps.clock());
      // One of them that fails keeps nobody from the other.
      const rounds = [...(due.has('kill') ? [killing] : []), ...(due.has('pause') ? [pausing] : [])];
      const outcomes = await Promise.allSettled(rounds.map(({ round }) => round()));
      for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
    },
    settled: async () => void (await Promise.all([killing.settled(), pausing.settled()])),
  };
}

/**
 * Ends what has run out of time. All are cut off at once, whatever keeps others from being removed: what was asked for
 * before, a snapshot for one, may take minutes, and no round waits for that.
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
 * Pauses what has run out of time and is to be paused then. A pause may take minutes: each round begins those that are
 * due and waits for none, so that one that is slow holds back nobody but itself. `settled` waits for those under way.
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
 * A sandbox whose memory can't be kept after all is paused with its files: it must not run on, and they must not be
 * lost. One that can't be paused at all runs on until it can.
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
 * An automatic pause does not wait for a store that can't be used: it stays on its machine. One with volumes stays
 * there as well, whatever its create was told.
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
