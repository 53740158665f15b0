import { AtollError, messageOf } from '../../base/error.ts';
import type { EndReason } from '../../protocol/node.ts';
import type { App } from '../app/context.ts';
import type { SandboxRecord } from '../store/sandbox-row.ts';
import { deleteSandbox } from '../store/sandbox-state.ts';
import { runWorkflow } from './run.ts';
import type { Step } from './run.ts';

export type KillContext = { app: App; sandbox: SandboxRecord; reason: EndReason };

/**
 * Ends a sandbox whose row was moved to `killing`. From that move on there is no way back:
 * a step that fails leaves the row, and the reconciler of leftovers runs the same steps again.
 */
export async function killSandboxWorkflow(app: App, sandbox: SandboxRecord, reason: EndReason = 'asked'): Promise<void> {
  app.busy.add(sandbox.executionId);
  try {
    await runWorkflow('kill-sandbox', killSandboxSteps, { app, sandbox, reason }, {
      log: app.log.with({ sandboxId: sandbox.sandboxId }), measures: app.measures,
    });
  } finally {
    app.busy.delete(sandbox.executionId);
  }
}

export const killSandboxSteps: readonly Step<KillContext>[] = [
  {
    name: 'cut',
    async run({ app, sandbox }) {
      app.directory.close(sandbox);
      await app.directory.settled();
    },
  },
  {
    name: 'end',
    async run({ app, sandbox, reason }) {
      const node = app.nodes.get(sandbox.nodeId);
      const { sandboxId, executionId, nextExecutionId } = sandbox;
      // The one that a resume begins goes first: a resume that fails meanwhile leaves the other one.
      if (nextExecutionId !== null) await node.kill({ sandboxId, executionId: nextExecutionId }, reason);
      await node.kill({ sandboxId, executionId }, reason);
    },
  },
  {
    name: 'forget',
    async run({ app, sandbox }) {
      try {
        await deleteSandbox(app.store.db, sandbox, ['killing'], { reason: 'request', atUs: app.clock() });
      } catch (error) {
        // The sandbox is gone, and nobody sees a row in this state: it is told so, and the row goes when the database is back.
        if (!(error instanceof AtollError) || error.code !== 'unavailable') throw error;
        app.log.warn('the row of a sandbox that was killed stays until the database is back', { sandboxId: sandbox.sandboxId, error: messageOf(error) });
      }
    },
  },
];
