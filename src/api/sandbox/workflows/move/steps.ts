import { AtollError, messageOf } from '../../../../base/error.ts';
import { newUuid } from '../../../../base/id.ts';
import type { EgressPolicy } from '../../../../protocol/network/network.ts';
import type { DurablePauses } from '../../../blob/rules/pauses.ts';
import { hasRoom } from '../../../placement/has-room.ts';
import type { SandboxRecord } from '../../record.ts';
import { demandsOf } from '../../rules/demands.ts';
import { sandboxMoved } from '../../rules/find.ts';
import { startSettings } from '../../rules/start-settings.ts';
import { beginMove, finishMove, recordNextRun } from '../../store/move.ts';
import { runWorkflow, type SandboxWork, type Step } from '../run.ts';
import { holdCurrentSecrets } from '../secrets.ts';
import { type SettleMoveDeps, removeLeft, settleMove } from './settle.ts';

/** The context of the steps of a move. */
type MoveContext = {
  deps: SettleMoveDeps & SandboxWork;
  /** Carries it. */
  durable: DurablePauses;
  /** In state `running`; the moving one and, at the end, the running one on the other machine replace it. */
  sandbox: SandboxRecord;
  /** The machine that will get it. */
  nextNodeId: string;
  /** The incarnation that begins there (UUID). */
  nextExecutionId: string;
  draftId: string;
  /**
   * Size of the draft that both machines have; null: there is none, and everything is sent once the sandbox stands
   * still.
   */
  draftBytes: number | null;
  /** The egress policy that its node was told. */
  policy?: EgressPolicy;
};

/**
 * Moves a running sandbox to another machine, with its memory and its files: it stands still meanwhile, and its
 * connections are cut. If that fails before the other machine has it, it runs on where it was. Throws `conflict` where
 * this process works on it already.
 */
export async function moveSandboxWorkflow(
  deps: MoveContext['deps'],
  sandbox: SandboxRecord,
  { nextNodeId, durable }: { nextNodeId: string; durable: DurablePauses },
): Promise<SandboxRecord> {
  const context: MoveContext = {
    deps,
    durable,
    sandbox,
    nextNodeId,
    nextExecutionId: newUuid(),
    draftId: newUuid(),
    draftBytes: null,
  };
  // A row names only the process that works on it: two moves in one process would each take the other's for its own.
  if (deps.busy.has(sandbox.executionId)) throw sandboxMoved(sandbox.sandboxId);
  await deps.busy.while(sandbox.executionId, () =>
    runWorkflow('move-sandbox', moveSandboxSteps, context, {
      log: deps.log.with({ sandboxId: sandbox.sandboxId }),
      measures: deps.measures,
    }),
  );
  return context.sandbox;
}

const draftOf = ({ draftId, sandbox }: MoveContext) => ({ ...executionOf(sandbox), nodeId: sandbox.nodeId, draftId });

const executionOf = ({ sandboxId, executionId }: SandboxRecord) => ({ sandboxId, executionId });

/**
 * The steps of a move: bring its layers and a draft of it while it runs, reserve its place, cut its connections, keep
 * it, carry what has changed to the other machine, start it there, switch its row, remove what stayed behind.
 */
const moveSandboxSteps: readonly Step<MoveContext>[] = [
  { name: 'prepare', run: ({ durable, sandbox, nextNodeId }) => durable.prepare(sandbox, nextNodeId) },
  {
    name: 'draft',
    async run(context) {
      const { deps, durable, nextNodeId } = context;
      try {
        context.draftBytes = await durable.draft(draftOf(context), nextNodeId);
      } catch (error) {
        // Another process is moving it.
        if (error instanceof AtollError && error.code === 'conflict') throw error;
        // A machine of the previous release has no drafts, and there may be no room for one.
        deps.log.debug('a sandbox is moved without a draft', { error: messageOf(error) });
      }
    },
    undo: context => context.durable.dropDraft(draftOf(context), context.nextNodeId),
  },
  {
    name: 'reserve',
    async run(context) {
      const { deps, sandbox, nextNodeId } = context;
      if (sandbox.state === 'moving') return;
      const { sandboxId, cpuCount, memoryMiB } = sandbox;
      const moving = await beginMove(deps.db, sandbox, { nextNodeId, replicaId: deps.busy.replicaId }, db =>
        hasRoom({ db, nodes: deps.nodes }, { nodeId: nextNodeId, cpuCount, memoryMiB, sandboxId }, demandsOf(sandbox)),
      );
      if (moving === 'node_full')
        throw new AtollError('unavailable', 'The machine that was chosen has no room any more');
      if (!moving) throw sandboxMoved(sandbox.sandboxId);
      context.sandbox = moving;
    },
    async undo({ deps, sandbox }) {
      if (sandbox.state === 'moving') await settleMove(deps, sandbox);
    },
  },
  {
    name: 'cut',
    async run({ deps, sandbox }) {
      deps.directory.apply(sandbox);
      await deps.directory.settled();
    },
  },
  {
    name: 'keep',
    async run({ deps, sandbox }) {
      const { kept } = await deps.nodes.get(sandbox.nodeId).pause(executionOf(sandbox), { memory: true });
      if (kept !== 'memory') throw new AtollError('internal', 'Its processes ended when its memory was to be kept');
    },
  },
  {
    name: 'carry',
    async run({ durable, sandbox, nextNodeId, draftId, draftBytes }) {
      await durable.carry(sandbox, nextNodeId, draftBytes === null ? null : { draftId, sizeBytes: draftBytes });
    },
    async undo({ deps, sandbox, nextNodeId }) {
      // After the move, what is there is the sandbox itself.
      if (sandbox.state !== 'moving') return;
      // If it can't be done now, adoption does it; but once the sandbox is killed, nobody would know of it.
      await deps.nodes
        .get(nextNodeId)
        .kill(executionOf(sandbox))
        .catch((error: unknown) =>
          deps.log.warn('the copy of a sandbox that was not moved stays for now', { error: messageOf(error) }),
        );
    },
  },
  {
    name: 'start',
    async run(context) {
      const { deps, sandbox, nextNodeId, nextExecutionId } = context;
      const next = { nextNodeId, nextExecutionId, durability: null, replicaId: deps.busy.replicaId } as const;
      const recorded = await recordNextRun(deps.db, sandbox, next);
      if (!recorded) throw sandboxMoved(sandbox.sandboxId);
      context.sandbox = recorded;
      const settings = await startSettings(deps, recorded);
      context.policy = settings.network;
      await deps.nodes.get(nextNodeId).resume({ ...settings, nextExecutionId, memory: true });
    },
  },
  {
    name: 'switch',
    async run(context) {
      const { deps, durable, sandbox, nextNodeId, nextExecutionId, policy } = context;
      if (sandbox.executionId === nextExecutionId) return;
      const draft = draftOf(context);
      const moved = await finishMove(deps.db, sandbox, nextExecutionId, deps.clock());
      if (!moved) throw sandboxMoved(sandbox.sandboxId);
      context.sandbox = moved;
      deps.directory.apply(moved);
      deps.log.info('a sandbox was moved', {
        sandboxId: moved.sandboxId,
        from: draft.nodeId,
        to: nextNodeId,
        draft: context.draftBytes !== null,
      });
      await removeLeft(deps, sandbox);
      await durable.dropDraft(draft, nextNodeId);
      if (policy) await holdCurrentSecrets(deps, moved, policy);
    },
  },
];
