import { assert, AtollError, messageOf } from '../../../../base/error.ts';
import type { Log } from '../../../../base/telemetry/log.ts';
import type { DurablePauses } from '../../../blob/rules/pauses.ts';
import type { PausedSandbox } from '../../../../protocol/node.ts';
import { pauseNotStored } from '../../rules/durability.ts';
import { sandboxMoved } from '../../rules/find.ts';
import { finishPause } from '../../store/pause.ts';
import { runWorkflow } from '../run.ts';
import type { Step } from '../run.ts';
import { settleSandbox, type SettleDeps } from '../settle.ts';
import type { SandboxRecord } from '../../record.ts';
import type { SandboxWork } from '../run.ts';

/** What a pause needs. */
export type PauseWork = SandboxWork & SettleDeps;

/** The context of the steps of a pause. */
type PauseContext = {
  deps: PauseWork;
  /** In state `pausing`; at the end, the paused one replaces it. */
  sandbox: SandboxRecord;
  kept?: PausedSandbox;
  /** Puts what is kept into the store. Null: it stays on its machine. */
  durable: DurablePauses | null;
  /** Only if the agent in the sandbox answers. */
  requireAgent: boolean;
};

/**
 * Pauses a sandbox whose row was changed to `pausing`. If that fails, the sandbox runs on, if it still runs. With
 * `durable` it is in the store before this settles; if storing fails it is paused on its machine, and the error says
 * so.
 */
export async function pauseSandboxWorkflow(
  deps: PauseWork,
  sandbox: SandboxRecord,
  { durable, requireAgent }: Pick<PauseContext, 'durable' | 'requireAgent'>,
): Promise<SandboxRecord> {
  const context: PauseContext = { deps, sandbox, durable, requireAgent };
  await deps.busy.while(sandbox.executionId, () =>
    runWorkflow('pause-sandbox', pauseSandboxSteps, context, {
      log: deps.log.with({ sandboxId: sandbox.sandboxId }),
      measures: deps.measures,
    }),
  );
  return context.sandbox;
}

/** Puts what a paused sandbox has kept on its machine into the store. Errors: `unavailable`, with the reason. */
export async function storePause({ log }: { log: Log }, durable: DurablePauses, sandbox: SandboxRecord): Promise<void> {
  try {
    await durable.store(sandbox);
  } catch (cause) {
    const { sandboxId } = sandbox;
    log.warn('a pause is on its machine alone', { sandboxId, error: messageOf(cause) });
    throw new AtollError(
      'unavailable',
      `Sandbox "${sandboxId}" is paused, on its machine alone: it could not be put into the store. Pause it with ` +
        'durability: cluster again to try that again',
      { mayHaveChanged: true, detail: pauseNotStored, cause },
    );
  }
}

/** The steps of a pause: cut its connections, keep it, store it where requested, publish that it is paused. */
export const pauseSandboxSteps: readonly Step<PauseContext>[] = [
  {
    name: 'cut',
    async run({ deps, sandbox }) {
      deps.directory.apply(sandbox);
      await deps.directory.settled();
    },
    async undo({ deps, sandbox }) {
      await settleSandbox(deps, sandbox);
    },
  },
  {
    name: 'keep',
    async run(context) {
      const { deps, sandbox, requireAgent } = context;
      const target = { sandboxId: sandbox.sandboxId, executionId: sandbox.executionId };
      const memory = sandbox.kept === 'memory';
      const options = { memory, ...(memory && { noteAgent: true }), ...(requireAgent && { requireAgent }) };
      context.kept = await deps.nodes.get(sandbox.nodeId).pause(target, options);
    },
  },
  {
    name: 'store',
    async run({ deps, sandbox, durable }) {
      if (durable) await storePause(deps, durable, sandbox);
    },
  },
  {
    name: 'publish',
    async run(context) {
      const { deps, sandbox, kept, durable } = context;
      if (sandbox.state === 'paused') return;
      assert(kept !== undefined, 'a pause is published before it was made');
      const paused = await finishPause(deps.db, sandbox, kept, deps.clock(), durable ? 'cluster' : 'node');
      if (!paused) throw sandboxMoved(sandbox.sandboxId);
      context.sandbox = paused;
      deps.directory.apply(paused);
    },
  },
];
