import type { App } from '../app/context.ts';
import { egressPolicyFor } from '../app/egress-secrets.ts';
import { sandboxMoved } from '../app/sandbox-find.ts';
import { findExecution } from '../store/sandbox-read.ts';
import { setSandboxNetwork } from '../store/sandbox-network.ts';
import type { NetworkSettings } from '../store/sandbox-network.ts';
import type { SandboxRecord } from '../store/sandbox-row.ts';
import { runWorkflow } from './run.ts';
import type { Step } from './run.ts';

/** Updates of one sandbox that come so quickly that none is ever the last do not happen. */
const appliesMax = 10;

export type UpdateNetworkContext = { app: App; sandbox: SandboxRecord; settings: NetworkSettings };

/**
 * Changes what may leave a running sandbox: first in the store, then on its node. What was applied is compared with the
 * store afterwards, so that of updates at the same time the one that the store kept is the one that holds.
 */
export async function updateNetworkWorkflow(context: UpdateNetworkContext): Promise<void> {
  await runWorkflow('update-network', updateNetworkSteps, context, { log: context.app.log.with({ sandboxId: context.sandbox.sandboxId }), measures: context.app.measures });
}

const updateNetworkSteps: readonly Step<UpdateNetworkContext>[] = [
  {
    name: 'record',
    async run({ app, sandbox, settings }) {
      if (!(await setSandboxNetwork(app.store.db, sandbox, settings, app.clock()))) throw sandboxMoved(sandbox.sandboxId);
    },
    async undo({ app, sandbox, settings }) {
      await setSandboxNetwork(app.store.db, sandbox, sandbox, app.clock(), settings);
    },
  },
  {
    name: 'apply',
    run: ({ app, sandbox }) => applyNetwork(app, sandbox),
  },
];

/** Makes a running sandbox's node enforce what the store says. */
export async function applyNetwork(app: App, target: SandboxRecord): Promise<void> {
  for (let applies = 0; applies < appliesMax; applies++) {
    const sandbox = await findExecution(app.store.db, target);
    if (sandbox?.state !== 'running' && sandbox?.state !== 'snapshotting') return;
    const policy = await egressPolicyFor(app, sandbox);
    await app.nodes.get(sandbox.nodeId).updateNetwork({ sandboxId: sandbox.sandboxId, executionId: sandbox.executionId }, policy);
    const after = await findExecution(app.store.db, target);
    if (!after || JSON.stringify(await egressPolicyFor(app, after)) === JSON.stringify(policy)) return;
  }
}
