import { AtollError, assert } from '../../base/error.ts';
import type { EgressPolicy } from '../../protocol/network.ts';
import type { Kept } from '../../protocol/node.ts';
import { limitsOf } from '../app/context.ts';
import type { App } from '../app/context.ts';
import { egressPolicyFor } from '../app/egress-secrets.ts';
import { sandboxMoved } from '../app/sandbox-find.ts';
import { holdSecrets } from '../app/secret-change.ts';
import { tokensOf } from '../app/tokens.ts';
import { beginResume, finishResume } from '../store/sandbox-resume.ts';
import type { SandboxRecord } from '../store/sandbox-row.ts';
import type { TeamRecord } from '../store/team.ts';
import { globalEnvironment } from './create-sandbox.ts';
import { runWorkflow } from './run.ts';
import type { Step } from './run.ts';
import { runFrom, settleSandbox } from './settle-sandbox.ts';

export type ResumeContext = {
  app: App;
  team: TeamRecord;
  /** In state `paused`; replaced by the resuming one and, at the end, by the running one. */
  sandbox: SandboxRecord;
  /** The incarnation that begins (UUID). */
  nextExecutionId: string;
  /** How long it is to run. */
  seconds: number;
  memory: boolean;
  /** Replaces what the sandbox does when its time is over. */
  autoPause?: boolean;
  from?: Kept;
  /** What its node was told of what may leave it. */
  policy?: EgressPolicy;
};

/** Lets a paused sandbox run again. Where it fails, the sandbox stays paused. */
export async function resumeSandboxWorkflow(context: ResumeContext): Promise<{ sandbox: SandboxRecord; from: Kept }> {
  const { app, sandbox } = context;
  await app.busy.while(sandbox.executionId, () =>
    runWorkflow('resume-sandbox', resumeSandboxSteps, context, { log: app.log.with({ sandboxId: sandbox.sandboxId }), measures: app.measures }),
  );
  assert(context.from !== undefined, 'a resume ended without having begun');
  return { sandbox: context.sandbox, from: context.from };
}

export const resumeSandboxSteps: readonly Step<ResumeContext>[] = [
  {
    name: 'claim',
    async run(context) {
      const { app, team, sandbox, nextExecutionId } = context;
      if (sandbox.nextExecutionId === nextExecutionId) return;
      const limit = limitsOf(app, team).concurrentSandboxes;
      const resuming = await beginResume(app.store, sandbox, nextExecutionId, limit);
      if (resuming === 'full') throw new AtollError('rate_limited', `The team has ${limit} sandboxes running, which is its limit: end or pause one first`);
      if (!resuming) throw sandboxMoved(sandbox.sandboxId);
      context.sandbox = resuming;
      app.directory.apply(resuming);
    },
    async undo({ app, sandbox }) {
      // Nothing was claimed where the row is still as it was found.
      if (sandbox.nextExecutionId !== null) await settleSandbox(app, sandbox);
    },
  },
  {
    name: 'start',
    async run(context) {
      const { app, sandbox, nextExecutionId, memory } = context;
      const { sandboxId, executionId } = sandbox;
      context.policy = await egressPolicyFor(app, sandbox);
      const { from } = await app.nodes.get(sandbox.nodeId).resume({
        sandboxId,
        executionId,
        nextExecutionId,
        memory,
        network: context.policy,
        envVars: globalEnvironment(sandbox),
        accessToken: tokensOf(app.seed, sandbox).accessToken,
      });
      context.from = from;
    },
  },
  {
    name: 'publish',
    async run(context) {
      const { app, sandbox, nextExecutionId, seconds, autoPause, policy } = context;
      const { sandboxId, executionId } = sandbox;
      if (executionId === nextExecutionId) return;
      const run = { ...runFrom(app, seconds), ...(autoPause !== undefined && { autoPause }) };
      const running = await finishResume(app.store.db, { sandboxId, executionId, nextExecutionId }, run);
      if (!running) throw sandboxMoved(sandboxId);
      context.sandbox = running;
      app.directory.apply(running);
      if (policy) await holdSecrets(app, running, policy);
    },
  },
];
