import { AtollError } from '../../base/error.ts';
import type { EgressPolicy } from '../../protocol/network.ts';
import type { NodeProtocol, TemplateImage } from '../../protocol/node.ts';
import { occupyingStates } from '../../protocol/state.ts';
import { microsPerSecond } from '../app/clock.ts';
import { limitsOf } from '../app/context.ts';
import type { App } from '../app/context.ts';
import { egressPolicyFor } from '../app/egress-secrets.ts';
import { holdSecrets } from '../app/secret-change.ts';
import { tokensOf } from '../app/tokens.ts';
import { insertSandbox } from '../store/sandbox-create.ts';
import type { SandboxRecord } from '../store/sandbox-row.ts';
import { deleteSandbox, publishSandbox } from '../store/sandbox-state.ts';
import type { TeamRecord } from '../store/team.ts';
import { runWorkflow } from './run.ts';
import type { Step } from './run.ts';

export type CreateContext = {
  app: App;
  team: TeamRecord;
  node: NodeProtocol;
  image: TemplateImage;
  /** In state `starting`; replaced by the running one at the end. */
  sandbox: SandboxRecord;
  /** What it begins as, where it is a fork. */
  forkOf?: SandboxRecord;
  /** What its node was told of what may leave it. */
  policy?: EgressPolicy;
};

/**
 * Creates the sandbox whose record is in the context: reserves its row, starts it, publishes it.
 * Answers the running sandbox. A failure at any step leaves neither row nor sandbox.
 */
export async function createSandboxWorkflow(context: CreateContext, signal: AbortSignal): Promise<SandboxRecord> {
  const { app, sandbox } = context;
  app.busy.add(sandbox.executionId);
  try {
    await runWorkflow('create-sandbox', createSandboxSteps, context, {
      log: app.log.with({ sandboxId: sandbox.sandboxId }), measures: app.measures,
      signal,
    });
    app.startCounts.note(sandbox.teamId);
    return context.sandbox;
  } finally {
    app.busy.delete(sandbox.executionId);
  }
}

export const createSandboxSteps: readonly Step<CreateContext>[] = [
  {
    name: 'reserve',
    async run({ app, team, sandbox }) {
      const limit = limitsOf(app, team).concurrentSandboxes;
      const outcome = await insertSandbox(app.store, sandbox, limit);
      if (outcome === 'volume_gone') throw new AtollError('invalid', 'volumeMounts: a volume was deleted at this moment');
      if (outcome === 'full') {
        throw new AtollError('rate_limited', `The team has ${limit} sandboxes running, which is its limit: end one first`);
      }
    },
    async undo({ app, sandbox }) {
      await deleteSandbox(app.store.db, sandbox, ['starting', 'killing'], { reason: 'failed', atUs: app.clock() });
    },
  },
  {
    name: 'start',
    async run(context, signal) {
      const { app, node, image, sandbox } = context;
      context.policy = await egressPolicyFor(app, sandbox);
      await node.create(
        {
          sandboxId: sandbox.sandboxId,
          executionId: sandbox.executionId,
          image,
          resources: { cpuCount: sandbox.cpuCount, memoryMiB: sandbox.memoryMiB, diskMiB: sandbox.diskMiB },
          network: context.policy,
          envVars: globalEnvironment(sandbox),
          accessToken: tokensOf(app.seed, sandbox).accessToken,
          volumes: sandbox.volumeMounts.map(({ volumeId, path }) => ({ volumeId, path })),
        },
        signal,
      );
    },
    async undo({ node, sandbox }) {
      await node.kill({ sandboxId: sandbox.sandboxId, executionId: sandbox.executionId });
    },
  },
  {
    name: 'publish',
    async run(context, signal) {
      // The client that asked is gone or was told that it took too long: nobody knows this sandbox's ID.
      signal?.throwIfAborted();
      const { app, sandbox, forkOf, policy } = context;
      const startedAtUs = app.clock();
      const endAtUs = startedAtUs + sandbox.timeoutSeconds * microsPerSecond;
      const running = await publishSandbox(app.store, sandbox, { startedAtUs, endAtUs }, forkOf);
      if (!running) throw new AtollError('internal', 'The sandbox ended while it was starting', { detail: 'sandbox_create_failed' });
      context.sandbox = running;
      app.directory.apply(running);
      if (policy) await holdSecrets(app, running, policy);
    },
    async undo({ app, sandbox }) {
      app.directory.close(sandbox);
      await deleteSandbox(app.store.db, sandbox, occupyingStates, { reason: 'failed', atUs: app.clock() });
    },
  },
];

/** The environment of every process in the sandbox. A caller can't override what names the sandbox. */
export function globalEnvironment(sandbox: SandboxRecord): Record<string, string> {
  return {
    ...sandbox.envVars,
    E2B_SANDBOX: 'true',
    E2B_SANDBOX_ID: sandbox.sandboxId,
    E2B_TEMPLATE_ID: sandbox.templateId,
  };
}
