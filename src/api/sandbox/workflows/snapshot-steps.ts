import { newUuid } from '../../../base/id.ts';
import type { Snapshot, TakeSnapshot } from '../../../protocol/node.ts';
import { sandboxMoved } from '../rules/find.ts';
import { moveSandbox } from '../store/state.ts';
import { runWorkflow } from './run.ts';
import type { Step } from './run.ts';
import { settleSandbox, type SettleDeps } from './settle.ts';
import type { SandboxRecord } from '../record.ts';
import type { SandboxWork } from './run.ts';

/** A snapshot that a node has taken, but that nobody was told of yet. */
export type TakenSnapshot = Snapshot & { snapshotId: string };

/** What to take. */
export type WhatToTake = Pick<TakeSnapshot, 'memory' | 'transient'>;

/** What a snapshot needs. */
export type SnapshotWork = SandboxWork & SettleDeps;

/** The context of the steps of a snapshot. */
type SnapshotContext = {
  deps: SnapshotWork;
  /** In state `running`, and again at the end; in between, in state `snapshotting`. */
  sandbox: SandboxRecord;
  snapshotId: string;
  what: WhatToTake;
  taken?: Snapshot;
};

/**
 * Takes a snapshot of a running sandbox, which runs on. If the snapshot is then not recorded, the reconciler deletes
 * it.
 */
export async function snapshotSandboxWorkflow(
  deps: SnapshotWork,
  sandbox: SandboxRecord,
  what: WhatToTake,
): Promise<TakenSnapshot> {
  const context: SnapshotContext = { deps, sandbox, snapshotId: newUuid(), what };
  await deps.busy.while(sandbox.executionId, () =>
    runWorkflow('snapshot-sandbox', snapshotSandboxSteps, context, {
      log: deps.log.with({ sandboxId: sandbox.sandboxId }),
      measures: deps.measures,
    }),
  );
  const { taken, snapshotId } = context;
  if (!taken) throw sandboxMoved(sandbox.sandboxId);
  return { ...taken, snapshotId };
}

/** The steps of a snapshot: mark the sandbox, take it, unmark the sandbox. */
export const snapshotSandboxSteps: readonly Step<SnapshotContext>[] = [
  {
    name: 'mark',
    async run(context) {
      const { deps, sandbox } = context;
      if (sandbox.state === 'snapshotting') return;
      const marked = await moveSandbox(deps.db, sandbox, ['running'], 'snapshotting', deps.busy.replicaId);
      if (!marked) throw sandboxMoved(sandbox.sandboxId);
      context.sandbox = marked;
    },
    async undo({ deps, sandbox }) {
      if (sandbox.state === 'snapshotting') await settleSandbox(deps, sandbox);
    },
  },
  {
    name: 'take',
    async run(context) {
      const { deps, sandbox, snapshotId, what } = context;
      const target = { sandboxId: sandbox.sandboxId, executionId: sandbox.executionId };
      context.taken = await deps.nodes.get(sandbox.nodeId).snapshot({ ...target, snapshotId, ...what });
    },
    async undo({ deps, sandbox, snapshotId }) {
      await deps.nodes.get(sandbox.nodeId).deleteSnapshot(snapshotId);
    },
  },
  {
    name: 'unmark',
    async run({ deps, sandbox }) {
      // By the node's word, not by the record: a sandbox that was killed meanwhile stays so.
      await settleSandbox(deps, sandbox);
    },
  },
];
