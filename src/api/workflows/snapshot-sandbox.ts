import { newUuid } from '../../base/id.ts';
import type { Snapshot } from '../../protocol/node.ts';
import type { App } from '../app/context.ts';
import { sandboxMoved } from '../app/sandbox-find.ts';
import type { SandboxRecord } from '../store/sandbox-row.ts';
import { moveSandbox } from '../store/sandbox-state.ts';
import { runWorkflow } from './run.ts';
import type { Step } from './run.ts';
import { settleSandbox } from './settle-sandbox.ts';

/** A snapshot that a node has taken and nobody has been told of. */
export type TakenSnapshot = Snapshot & { snapshotId: string };

export type SnapshotContext = {
  app: App;
  /** In state `running`, and again at the end; between them, the one in state `snapshotting`. */
  sandbox: SandboxRecord;
  snapshotId: string;
  memory: boolean;
  taken?: Snapshot;
};

/** Takes a snapshot of a running sandbox, which runs on. What is taken and then not recorded, the reconciler deletes. */
export async function snapshotSandboxWorkflow(app: App, sandbox: SandboxRecord, memory: boolean): Promise<TakenSnapshot> {
  const context: SnapshotContext = { app, sandbox, snapshotId: newUuid(), memory };
  await app.busy.while(sandbox.executionId, () =>
    runWorkflow('snapshot-sandbox', snapshotSandboxSteps, context, { log: app.log.with({ sandboxId: sandbox.sandboxId }), measures: app.measures }),
  );
  const { taken, snapshotId } = context;
  if (!taken) throw sandboxMoved(sandbox.sandboxId);
  return { ...taken, snapshotId };
}

export const snapshotSandboxSteps: readonly Step<SnapshotContext>[] = [
  {
    name: 'mark',
    async run(context) {
      const { app, sandbox } = context;
      if (sandbox.state === 'snapshotting') return;
      const marked = await moveSandbox(app.store.db, sandbox, ['running'], 'snapshotting');
      if (!marked) throw sandboxMoved(sandbox.sandboxId);
      context.sandbox = marked;
    },
    async undo({ app, sandbox }) {
      if (sandbox.state === 'snapshotting') await settleSandbox(app, sandbox);
    },
  },
  {
    name: 'take',
    async run(context) {
      const { app, sandbox, snapshotId, memory } = context;
      const target = { sandboxId: sandbox.sandboxId, executionId: sandbox.executionId };
      context.taken = await app.nodes.get(sandbox.nodeId).snapshot({ ...target, snapshotId, memory });
    },
    async undo({ app, sandbox, snapshotId }) {
      await app.nodes.get(sandbox.nodeId).deleteSnapshot(snapshotId);
    },
  },
  {
    name: 'unmark',
    async run({ app, sandbox }) {
      // Not the record: what the node says of the sandbox is what it is. One that was killed meanwhile stays so.
      await settleSandbox(app, sandbox);
    },
  },
];
