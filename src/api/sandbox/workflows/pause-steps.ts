import { assert } from '../../../base/error.ts';
import type { Kept } from '../../../protocol/node.ts';
import { sandboxMoved } from '../rules/find.ts';
import { finishPause } from '../store/pause.ts';
import { runWorkflow } from './run.ts';
import type { Step } from './run.ts';
import { settleSandbox } from './settle.ts';
import type { SandboxRecord } from '../record.ts';
import type { SandboxWork } from './run.ts';

/** What the steps of a pause work on. */
type PauseContext = {
  deps: SandboxWork;
  /** In state `pausing`; replaced by the paused one at the end. */
  sandbox: SandboxRecord;
  kept?: Kept;
};

/** Pauses a sandbox whose row was moved to `pausing`. Where it fails, the sandbox runs on, if it does. */
export async function pauseSandboxWorkflow(deps: SandboxWork, sandbox: SandboxRecord): Promise<SandboxRecord> {
  const context: PauseContext = { deps, sandbox };
  await deps.busy.while(sandbox.executionId, () =>
    runWorkflow('pause-sandbox', pauseSandboxSteps, context, {
      log: deps.log.with({ sandboxId: sandbox.sandboxId }),
      measures: deps.measures,
    }),
  );
  return context.sandbox;
}

/** The steps of a pause: cut its connections, keep it, publish that it is paused. */
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
      const { deps, sandbox } = context;
      const target = { sandboxId: sandbox.sandboxId, executionId: sandbox.executionId };
      const paused = await deps.nodes.get(sandbox.nodeId).pause(target, { memory: sandbox.kept === 'memory' });
      context.kept = paused.kept;
    },
  },
  {
    name: 'publish',
    async run(context) {
      const { deps, sandbox, kept } = context;
      if (sandbox.state === 'paused') return;
      assert(kept !== undefined, 'a pause is published before it was made');
      const paused = await finishPause(deps.db, sandbox, kept, deps.clock());
      if (!paused) throw sandboxMoved(sandbox.sandboxId);
      context.sandbox = paused;
      deps.directory.apply(paused);
    },
  },
];
