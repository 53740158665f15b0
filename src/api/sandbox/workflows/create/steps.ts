import { counted } from '../../../../base/counted.ts';
import { AtollError } from '../../../../base/error.ts';
import type { Identity } from '../../../identity/rules/identity.ts';
import type { EgressPolicy } from '../../../../protocol/network/network.ts';
import type { NodeProtocol, TemplateImage } from '../../../../protocol/node.ts';
import { microsPerSecond } from '../../../../base/clock.ts';
import { requestUnderWay } from '../../rules/repeated.ts';
import { holdSecrets } from '../secrets.ts';
import { nodeFull } from '../../../../protocol/no-room.ts';
import { hasRoom, roomText } from '../../../placement/has-room.ts';
import { noCompatibleNode } from '../../../placement/nodes.ts';
import { demandsOf } from '../../rules/demands.ts';
import { insertSandbox } from '../../store/create.ts';
import type { Repeatable } from '../../store/idempotency.ts';
import { deleteSandbox, publishSandbox, undoPublish } from '../../store/state.ts';
import { runWorkflow } from '../run.ts';
import type { Step } from '../run.ts';
import { startSettings } from '../../rules/start-settings.ts';
import type { SandboxRecord } from '../../record.ts';
import type { TeamRecord } from '../../../team/record.ts';
import type { SandboxWork } from '../run.ts';
import type { LimitsOf } from '../../../team/rules/limits.ts';
import type { CreateCounts } from '../../../placement/create-counts.ts';
import type { StartCounts } from '../../../metrics/start-counts.ts';
import { createWorkflow } from '../../../metrics/measures.ts';

/** What it takes to start a sandbox. */
export type CreateWork = SandboxWork & {
  limitsOf: LimitsOf;
  seed: Uint8Array;
  identity: Identity;
  startCounts: StartCounts;
  createCounts: CreateCounts;
};

/** The context of the steps of a create. */
export type CreateContext = {
  deps: CreateWork;
  team: TeamRecord;
  node: NodeProtocol;
  image: TemplateImage;
  /** In state `starting`; at the end, the running one replaces it. */
  sandbox: SandboxRecord;
  /** The client's key for repeating the request. */
  repeatable?: Repeatable;
  /** The sandbox that it is a fork of, if any. */
  forkOf?: SandboxRecord;
  /** The egress policy that its node was told. */
  policy?: EgressPolicy;
};

/**
 * Creates the sandbox whose record is in the context: reserves its row, starts it, publishes it. Answers the running
 * sandbox. A failure at any step leaves neither row nor sandbox, and is not counted: another machine may be asked next.
 */
export async function createSandboxWorkflow(context: CreateContext, signal: AbortSignal): Promise<SandboxRecord> {
  const { deps, sandbox } = context;
  const startMs = performance.now();
  await deps.busy.while(sandbox.executionId, () =>
    runWorkflow(createWorkflow, createSandboxSteps, context, {
      log: deps.log.with({ sandboxId: sandbox.sandboxId }),
      signal,
    }),
  );
  deps.measures.workflow(createWorkflow, 'ok', (performance.now() - startMs) / 1000);
  deps.startCounts.count(sandbox.teamId);
  deps.createCounts.count(sandbox.nodeId, 'successes');
  return context.sandbox;
}

/** The steps of a create: reserve its row, start it, publish it. */
export const createSandboxSteps: readonly Step<CreateContext>[] = [
  {
    name: 'reserve',
    async run({ deps, team, sandbox, repeatable }) {
      const limits = deps.limitsOf(team);
      const row = { ...sandbox, replicaId: deps.busy.replicaId };
      const outcome = await insertSandbox(deps.db, row, limits, repeatable, db =>
        hasRoom({ db, nodes: deps.nodes }, sandbox, demandsOf(sandbox)),
      );
      if (outcome === 'key_taken') throw requestUnderWay();
      if (outcome === 'volume_gone')
        throw new AtollError('invalid', 'volumeMounts: a volume was deleted at this moment');
      if (outcome === 'volume_moves')
        throw new AtollError('unavailable', 'A volume goes to another machine now; nothing was changed, try again', {
          detail: noCompatibleNode,
          retryAfterSeconds: 5,
        });
      if (outcome === 'node_full')
        throw new AtollError('unavailable', await roomText(deps.db, sandbox.nodeId), { detail: nodeFull });
      if (outcome === 'too_many')
        throw new AtollError(
          'rate_limited',
          `The team has ${counted(limits.sandboxes, 'sandbox', 'sandboxes')}, running and paused, which is its limit ` +
            '(sandboxes): end one first',
        );
      if (outcome === 'full') {
        throw new AtollError(
          'rate_limited',
          `The team has ${counted(limits.concurrentSandboxes, 'sandbox', 'sandboxes')} running, which is its limit: ` +
            'end one first',
        );
      }
    },
    async undo({ deps, sandbox }) {
      await deleteSandbox(deps.db, sandbox, ['starting', 'killing'], { reason: 'failed', atUs: deps.clock() });
    },
  },
  {
    name: 'start',
    async run(context, signal) {
      const { deps, node, image, sandbox } = context;
      const settings = await startSettings(deps, sandbox);
      context.policy = settings.network;
      const { cpuCount, memoryMiB, diskMiB } = sandbox;
      await node.create(
        {
          ...settings,
          image,
          resources: { cpuCount, memoryMiB, diskMiB },
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
      // The client is gone or was told that it took too long: nobody knows this sandbox's ID.
      signal?.throwIfAborted();
      const { deps, sandbox, forkOf, policy, repeatable } = context;
      const startedAtUs = deps.clock();
      const endAtUs = startedAtUs + sandbox.timeoutSeconds * microsPerSecond;
      const running = await publishSandbox(
        deps.db,
        sandbox,
        { startedAtUs, endAtUs },
        { forkOf, key: repeatable?.key },
      );
      if (!running)
        throw new AtollError('internal', 'The sandbox ended while it was starting', {
          detail: 'sandbox_create_failed',
        });
      context.sandbox = running;
      deps.directory.apply(running);
      if (policy) await holdSecrets(deps, running, policy);
    },
    async undo({ deps, sandbox, repeatable }) {
      // In this order: if the row can't be taken back, the sandbox runs on and stays in reach.
      await undoPublish(deps.db, sandbox, repeatable?.key, deps.clock());
      deps.directory.close(sandbox);
    },
  },
];
