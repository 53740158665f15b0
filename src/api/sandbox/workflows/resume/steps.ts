import { counted } from '../../../../base/counted.ts';
import { AtollError, assert } from '../../../../base/error.ts';
import type { Identity } from '../../../identity/rules/identity.ts';
import type { EgressPolicy } from '../../../../protocol/network/network.ts';
import type { Kept } from '../../../../protocol/node.ts';
import { demandsOf } from '../../rules/demands.ts';
import { sandboxMoved } from '../../rules/find.ts';
import { holdCurrentSecrets } from '../secrets.ts';
import { findExecution, findSandboxOfAnyTeam } from '../../store/read.ts';
import { beginResume, cancelResume, finishResume } from '../../store/resume.ts';
import type { DurablePauses } from '../../../blob/rules/pauses.ts';
import { noDemands } from '../../../placement/demands.ts';
import { nodeFull } from '../../../../protocol/no-room.ts';
import { hasRoom, roomText } from '../../../placement/has-room.ts';
import { runWorkflow } from '../run.ts';
import type { Step } from '../run.ts';
import { runFrom, settleSandbox } from '../settle.ts';
import { startSettings } from '../../rules/start-settings.ts';
import type { SandboxRecord } from '../../record.ts';
import type { TeamRecord } from '../../../team/record.ts';
import type { SandboxWork } from '../run.ts';
import type { LimitsOf } from '../../../team/rules/limits.ts';

/** What resuming a sandbox needs. */
export type ResumeWork = SandboxWork & {
  limitsOf: LimitsOf;
  seed: Uint8Array;
  identity: Identity;
  /** Null: nothing is kept outside of its machine. */
  durablePauses: DurablePauses | null;
};

/** The context of the steps of a resume. */
type ResumeContext = {
  deps: ResumeWork;
  team: TeamRecord;
  /** In state `paused`; the resuming one and, at the end, the running one replace it. */
  sandbox: SandboxRecord;
  /** The incarnation that begins (UUID). */
  nextExecutionId: string;
  /** How long it should run. */
  seconds: number;
  memory: boolean;
  /** The machine on which it should run. */
  nodeId: string;
  /** Replaces what the sandbox does when its time is over. */
  autoPause?: boolean;
  from?: Kept;
  /** Its machine was asked to start it. */
  isAsked?: boolean;
  /** The egress policy that its node was told. */
  policy?: EgressPolicy;
};

/** Resumes a paused sandbox. If that fails, the sandbox stays paused. */
export async function resumeSandboxWorkflow(context: ResumeContext): Promise<{ sandbox: SandboxRecord; from: Kept }> {
  const { deps, sandbox } = context;
  await deps.busy.while(sandbox.executionId, () =>
    runWorkflow('resume-sandbox', resumeSandboxSteps, context, {
      log: deps.log.with({ sandboxId: sandbox.sandboxId }),
      measures: deps.measures,
    }),
  );
  assert(context.from !== undefined, 'a resume ended without having begun');
  return { sandbox: context.sandbox, from: context.from };
}

/** The steps of a resume: claim its row, bring what it has kept to its machine, start it, publish it. */
export const resumeSandboxSteps: readonly Step<ResumeContext>[] = [
  {
    name: 'claim',
    async run(context) {
      const { deps, team, sandbox, nextExecutionId, nodeId } = context;
      if (sandbox.nextExecutionId === nextExecutionId) return;
      const limit = deps.limitsOf(team).concurrentSandboxes;
      const claim = { nextExecutionId, replicaId: deps.busy.replicaId, nodeId, nowUs: deps.clock() };
      const { sandboxId, cpuCount, memoryMiB } = sandbox;
      const size = { nodeId, cpuCount, memoryMiB, sandboxId };
      // At home its demands are met already, and sandboxes that came there since don't exclude it.
      const demands = nodeId === sandbox.nodeId ? noDemands : demandsOf(sandbox);
      const { nodes } = deps;
      const resuming = await beginResume(deps.db, sandbox, claim, limit, db => hasRoom({ db, nodes }, size, demands));
      if (resuming === 'full')
        throw new AtollError(
          'rate_limited',
          `The team has ${counted(limit, 'sandbox', 'sandboxes')} running, which is its limit: end or pause one first`,
        );
      if (resuming === 'node_full')
        throw new AtollError('unavailable', await roomText(deps.db, nodeId), { detail: nodeFull });
      if (!resuming) throw sandboxMoved(sandbox.sandboxId);
      context.sandbox = resuming;
      deps.directory.apply(resuming);
    },
    async undo({ deps, sandbox, nextExecutionId, isAsked }) {
      // If the row is still as it was found, nothing was claimed.
      if (sandbox.nextExecutionId === null) return;
      if (isAsked) return void (await settleSandbox(deps, sandbox));
      // No machine was asked to start it, and the chosen one may be gone.
      const paused = await cancelResume(deps.db, { ...sandbox, nextExecutionId });
      if (paused) deps.directory.apply(paused);
    },
  },
  {
    name: 'bring',
    async run({ deps: { durablePauses }, sandbox }) {
      if (sandbox.durability === 'cluster') await durablePauses?.bring(sandbox);
    },
    async undo({ deps, sandbox }) {
      if (sandbox.durability !== 'cluster') return;
      // A kill meanwhile found nothing there yet, and nothing refers to what has arrived since.
      const row = await findSandboxOfAnyTeam(deps.db, sandbox.sandboxId);
      if (row === null || row.state === 'killing') await deps.nodes.get(sandbox.nodeId).kill(sandbox, 'asked');
    },
  },
  {
    name: 'start',
    async run(context) {
      const { deps, sandbox, nextExecutionId, memory } = context;
      const settings = await startSettings(deps, sandbox);
      context.policy = settings.network;
      // This process may have stood still while the machine was given up and came back: then nobody withdrew this
      // execution there.
      const row = await findExecution(deps.db, sandbox);
      if (row?.state !== 'resuming' || row.nextExecutionId !== nextExecutionId) throw sandboxMoved(sandbox.sandboxId);
      context.isAsked = true;
      const { from } = await deps.nodes.get(sandbox.nodeId).resume({ ...settings, nextExecutionId, memory });
      context.from = from;
    },
  },
  {
    name: 'publish',
    async run(context) {
      const { deps, sandbox, nextExecutionId, seconds, autoPause, policy } = context;
      const { sandboxId, executionId } = sandbox;
      if (executionId === nextExecutionId) return;
      const run = { ...runFrom(deps.clock, seconds), ...(autoPause !== undefined && { autoPause }) };
      const running = await finishResume(deps.db, { sandboxId, executionId, nextExecutionId }, run);
      if (!running) throw sandboxMoved(sandboxId);
      context.sandbox = running;
      deps.directory.apply(running);
      if (policy) await holdCurrentSecrets(deps, running, policy);
    },
  },
];
