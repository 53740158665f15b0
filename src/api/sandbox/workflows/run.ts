import { messageOf } from '../../../base/error.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import { step as traceStep } from '../../../base/telemetry/trace.ts';
import { outcomeOf } from '../../metrics/measures.ts';
import type { Measures } from '../../metrics/measures.ts';
import type { Db } from '../../database/db.ts';
import type { SandboxDirectory } from '../directory/directory.ts';
import type { Clock } from '../../../base/clock.ts';
import type { BusyExecutions } from '../rules/busy.ts';
import type { Nodes } from '../../placement/nodes.ts';

/** What a change of a sandbox needs: its row, its node, the edge, and the mark that it is under way. */
export type SandboxWork = {
  busy: BusyExecutions;
  clock: Clock;
  db: Db;
  directory: SandboxDirectory;
  log: Log;
  measures: Measures;
  nodes: Nodes;
};

/**
 * One step of a multi-step change. Both directions may be repeated, after a failure or by another process after a
 * crash: each must reach the same end however often and from whatever half-done state it runs.
 */
export type Step<Context> = {
  name: string;
  run(context: Context, signal?: AbortSignal): Promise<void>;
  /** Takes back whatever `run` may have done, even if it failed half-way. */
  undo?(context: Context): Promise<void>;
};

/**
 * Runs the steps in order. When one fails, it and those before it are undone, last first, and its error is thrown. An
 * undo that fails ends the undoing: the rest stays marked in the store, and a reconciler finishes it.
 */
export async function runWorkflow<Context>(
  name: string,
  steps: readonly Step<Context>[],
  context: Context,
  options: { log: Log; signal?: AbortSignal; measures?: Measures },
): Promise<void> {
  const begun: Step<Context>[] = [];
  const startMs = performance.now();
  const seconds = () => (performance.now() - startMs) / 1000;
  try {
    for (const step of steps) {
      options.signal?.throwIfAborted();
      begun.push(step);
      await traceStep(step.name, () => step.run(context, options.signal));
    }
    options.measures?.workflow(name, 'ok', seconds());
  } catch (error) {
    options.measures?.workflow(name, outcomeOf(error), seconds());
    options.log.debug('workflow is undone', { workflow: name, step: begun.at(-1)?.name, error: messageOf(error) });
    await undo(name, begun, context, options.log);
    throw error;
  }
}

async function undo<Context>(name: string, begun: Step<Context>[], context: Context, log: Log): Promise<void> {
  for (const step of begun.toReversed()) {
    try {
      await step.undo?.(context);
    } catch (error) {
      log.warn('undo failed and is left to the reconciler', {
        workflow: name,
        step: step.name,
        error: messageOf(error),
      });
      return;
    }
  }
}
