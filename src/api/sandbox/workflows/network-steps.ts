import { AtollError } from '../../../base/error.ts';
import { egressPolicyFor } from '../rules/network/egress-policy.ts';
import { sandboxMoved } from '../rules/find.ts';
import { findExecution } from '../store/read.ts';
import { setSandboxNetwork } from '../store/network.ts';
import type { NetworkSettings } from '../store/network.ts';
import { runWorkflow } from './run.ts';
import type { Step } from './run.ts';
import type { SandboxExecution, SandboxRecord } from '../record.ts';
import type { Identity } from '../../identity/rules/identity.ts';
import type { Db } from '../../database/db.ts';
import type { Nodes } from '../../placement/nodes.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import type { NodeProtocol } from '../../../protocol/node.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Measures } from '../../metrics/measures.ts';

/** What it takes to change a sandbox's egress policy. */
export type NetworkWork = ApplyDeps & { clock: Clock; measures: Measures };

/** Dependencies of telling a node the network policy of a sandbox. */
export type ApplyDeps = { db: Db; log: Log; nodes: Nodes; seed: Uint8Array; identity: Identity };

/** No sandbox gets updates so quickly that none of them is ever the last. */
const appliesMax = 10;

/** The context of the steps of a network update. */
type UpdateNetworkContext = { deps: NetworkWork; sandbox: SandboxRecord; settings: NetworkSettings };

/**
 * Changes a running sandbox's egress settings: first in the store, then on its node. The applied settings are then
 * compared with the store, so that of concurrent updates the one that the store kept takes effect.
 */
export async function updateNetworkWorkflow(context: UpdateNetworkContext): Promise<void> {
  await runWorkflow('update-network', updateNetworkSteps, context, {
    log: context.deps.log.with({ sandboxId: context.sandbox.sandboxId }),
    measures: context.deps.measures,
  });
}

const updateNetworkSteps: readonly Step<UpdateNetworkContext>[] = [
  {
    name: 'record',
    async run({ deps, sandbox, settings }) {
      if (!(await setSandboxNetwork(deps.db, sandbox, settings, deps.clock()))) throw sandboxMoved(sandbox.sandboxId);
    },
    async undo({ deps, sandbox, settings }) {
      await setSandboxNetwork(deps.db, sandbox, sandbox, deps.clock(), settings);
      // The node may have the change that was undone: perhaps only its answer was lost.
      await applyNetwork(deps, sandbox);
    },
  },
  { name: 'apply', run: ({ deps, sandbox }) => applyNetwork(deps, sandbox) },
];

/**
 * Makes the node of a sandbox that runs, but does not count as running yet, enforce the store's policy: while the
 * sandbox was in transition, nobody told the node of changes. `applyNetwork` does so again when it counts as running,
 * for changes in between. `begun`: the running execution, if it is another one by now. A full disk, on which the node
 * can't record new settings, does not keep the sandbox from counting as running.
 */
export async function tellNetwork(
  deps: Omit<ApplyDeps, 'nodes'>,
  node: NodeProtocol,
  sandbox: SandboxRecord,
  begun: string = sandbox.executionId,
): Promise<void> {
  const policy = await egressPolicyFor(deps, sandbox);
  const { sandboxId } = sandbox;
  try {
    await node.updateNetwork({ sandboxId, executionId: begun }, policy);
  } catch (error) {
    if (!(error instanceof AtollError) || error.code !== 'no_space') throw error;
    deps.log.error('a sandbox runs on without a change of its network', { sandboxId, error: error.message });
  }
}

/** Makes a running sandbox's node enforce the store's policy. */
export async function applyNetwork(deps: ApplyDeps, target: SandboxExecution): Promise<void> {
  for (let applies = 0; applies < appliesMax; applies++) {
    const sandbox = await findExecution(deps.db, target);
    if (sandbox?.state !== 'running' && sandbox?.state !== 'snapshotting') return;
    const policy = await egressPolicyFor(deps, sandbox);
    await deps.nodes
      .get(sandbox.nodeId)
      .updateNetwork({ sandboxId: sandbox.sandboxId, executionId: sandbox.executionId }, policy);
    const after = await findExecution(deps.db, target);
    if (!after || JSON.stringify(await egressPolicyFor(deps, after)) === JSON.stringify(policy)) return;
  }
}
