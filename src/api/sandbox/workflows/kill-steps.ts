import { AtollError, messageOf } from '../../../base/error.ts';
import type { EndReason, NodeProtocol } from '../../../protocol/node.ts';
import { deleteSandbox } from '../store/state.ts';
import { runWorkflow } from './run.ts';
import { isForgotten, isGone } from '../../placement/node-status.ts';
import type { Step } from './run.ts';
import type { SandboxFacts } from '../record.ts';
import type { SandboxWork } from './run.ts';

/** The context of the steps of a kill. */
export type KillContext = { deps: SandboxWork; sandbox: SandboxFacts; reason: EndReason };

/**
 * Ends a sandbox whose row was changed to `killing`. From that change on there is no way back: a step that fails leaves
 * the row, and the reconciler of leftovers runs the same steps again.
 */
export async function killSandboxWorkflow(
  deps: SandboxWork,
  sandbox: SandboxFacts,
  reason: EndReason = 'asked',
): Promise<void> {
  const context: KillContext = { deps, sandbox, reason };
  await deps.busy.while(sandbox.executionId, () =>
    runWorkflow('kill-sandbox', killSandboxSteps, context, {
      log: deps.log.with({ sandboxId: sandbox.sandboxId }),
      measures: deps.measures,
    }),
  );
}

const isAway = (error: unknown) => error instanceof AtollError && error.code === 'unavailable';

/** The steps of a kill: cut its connections, end it, forget its row. */
export const killSandboxSteps: readonly Step<KillContext>[] = [
  {
    name: 'cut',
    async run({ deps, sandbox }) {
      deps.directory.close(sandbox);
      await deps.directory.settled();
    },
  },
  {
    name: 'end',
    async run({ deps, sandbox, reason }) {
      const { nextNodeId } = sandbox;
      // A sandbox that was being moved may be on both machines.
      if (nextNodeId !== null && nextNodeId !== sandbox.nodeId && !(await isGone(deps.db, nextNodeId)))
        await endAt(deps.nodes.get(nextNodeId), sandbox, reason);
      try {
        await endAt(deps.nodes.get(sandbox.nodeId), sandbox, reason);
      } catch (error) {
        // A machine that was taken out leaves only what is in the store; nothing refers to that from here on.
        if (!isAway(error) || !(await isForgotten(deps, sandbox.nodeId))) throw error;
      }
    },
  },
  {
    name: 'forget',
    async run({ deps, sandbox }) {
      try {
        await deleteSandbox(deps.db, sandbox, ['killing'], { reason: 'request', atUs: deps.clock() });
      } catch (error) {
        // The sandbox is gone, and nobody sees a row in this state: the caller is told so, and the row goes when the
        // database is back.
        if (!isAway(error)) throw error;
        deps.log.warn('the row of a sandbox that was killed stays until the database is back', {
          sandboxId: sandbox.sandboxId,
          error: messageOf(error),
        });
      }
    },
  },
];

/** The execution that a resume or a move begins goes first: if that one fails meanwhile, the other one is left. */
async function endAt(
  node: NodeProtocol,
  { sandboxId, executionId, nextExecutionId }: SandboxFacts,
  reason: EndReason,
): Promise<void> {
  if (nextExecutionId !== null) {
    const next = { sandboxId, executionId: nextExecutionId };
    if (!(await node.withdraw(next))) await node.kill(next, reason);
  }
  await node.kill({ sandboxId, executionId }, reason);
}
