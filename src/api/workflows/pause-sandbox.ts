import { assert } from '../../base/error.ts';
import type { Kept } from '../../protocol/node.ts';
import type { App } from '../app/context.ts';
import { sandboxMoved } from '../app/sandbox-find.ts';
import { finishPause } from '../store/sandbox-pause.ts';
import type { SandboxRecord } from '../store/sandbox-row.ts';
import { runWorkflow } from './run.ts';
import type { Step } from './run.ts';
import { settleSandbox } from './settle-sandbox.ts';

export type PauseContext = {
  app: App;
  /** In state `pausing`; replaced by the paused one at the end. */
  sandbox: SandboxRecord;
  kept?: Kept;
};

/** Pauses a sandbox whose row was moved to `pausing`. Where it fails, the sandbox runs on, if it does. */
export async function pauseSandboxWorkflow(app: App, sandbox: SandboxRecord): Promise<SandboxRecord> {
  const context: PauseContext = { app, sandbox };
  await app.busy.while(sandbox.executionId, () =>
    runWorkflow('pause-sandbox', pauseSandboxSteps, context, { log: app.log.with({ sandboxId: sandbox.sandboxId }), measures: app.measures }),
  );
  return context.sandbox;
}

export const pauseSandboxSteps: readonly Step<PauseContext>[] = [
  {
    name: 'cut',
    async run({ app, sandbox }) {
      app.directory.apply(sandbox);
      await app.directory.settled();
    },
    async undo({ app, sandbox }) {
      await settleSandbox(app, sandbox);
    },
  },
  {
    name: 'keep',
    async run(context) {
      const { app, sandbox } = context;
      const target = { sandboxId: sandbox.sandboxId, executionId: sandbox.executionId };
      const paused = await app.nodes.get(sandbox.nodeId).pause(target, { memory: sandbox.kept === 'memory' });
      context.kept = paused.kept;
    },
  },
  {
    name: 'publish',
    async run(context) {
      const { app, sandbox, kept } = context;
      if (sandbox.state === 'paused') return;
      assert(kept !== undefined, 'a pause is published before it was made');
      const paused = await finishPause(app.store.db, sandbox, kept, app.clock());
      if (!paused) throw sandboxMoved(sandbox.sandboxId);
      context.sandbox = paused;
      app.directory.apply(paused);
    },
  },
];
