import { afterAll, expect, test } from 'bun:test';
import { AtollError } from '../../../../base/error.ts';
import { newSandboxId } from '../../../../base/id.ts';
import { silentLog } from '../../../../base/telemetry/log.ts';
import type { ExecutionRef, NodeProtocol, ResumeSandbox } from '../../../../protocol/node.ts';
import type { DurablePauses } from '../../../blob/rules/pauses.ts';
import { openStore } from '../../../database/database.ts';
import { createIdentity } from '../../../identity/rules/identity.ts';
import { createMeasures } from '../../../metrics/measures.ts';
import { singleNode } from '../../../placement/nodes.ts';
import { limitsFrom } from '../../../team/rules/limits.ts';
import { createTeam } from '../../../team/rules/provision-team.ts';
import { SandboxDirectory } from '../../directory/directory.ts';
import { defaultOptions, type SandboxRecord } from '../../record.ts';
import { BusyExecutions } from '../../rules/busy.ts';
import { insertSandbox } from '../../store/create.ts';
import { findSandboxOfAnyTeam } from '../../store/read.ts';
import { resumeSandboxSteps, resumeSandboxWorkflow, type ResumeWork } from './steps.ts';

const { db, ...store } = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => store[Symbol.asyncDispose]());
const nowUs = 1e15;
const clock = () => nowUs;
const seed = new Uint8Array(32).fill(1);
const identity = createIdentity({ seed, issuer: 'https://api.example.org', domain: 'example.org', clock });

type Scene = {
  change?: Partial<SandboxRecord>;
  concurrentSandboxes?: number;
  /** What the node does when it is asked, and whether it runs the sandbox then. */
  resuming?: (begin: () => void) => Promise<void>;
  bringing?: () => Promise<void>;
};

/** A paused sandbox that the steps resume. */
async function scene({ change = {}, concurrentSandboxes = 9, resuming, bringing = async () => {} }: Scene = {}) {
  const sandboxId = newSandboxId();
  const team = await createTeam({ db, clock }, { name: 'T', slug: `t${sandboxId.slice(0, 12)}` });
  const told: string[] = [];
  const asked: ResumeSandbox[] = [];
  const it = { runs: null as string | null };
  const nextExecutionId = `${sandboxId}/2`;
  const node = {
    async resume(request: ResumeSandbox) {
      asked.push(request);
      const begin = () => void (it.runs = request.nextExecutionId);
      if (resuming) await resuming(begin);
      else begin();
      return { from: 'memory' };
    },
    withdraw: async ({ executionId }: ExecutionRef) => it.runs !== executionId,
    list: async () => (it.runs === null ? [] : [{ sandboxId, executionId: it.runs }]),
    listPaused: async () => [{ sandboxId, executionId: `${sandboxId}/1`, kept: 'memory', pausedAtMs: 1 }],
    updateNetwork: async () => {},
    kill: async ({ executionId }: ExecutionRef) => void told.push(`kill ${executionId.slice(-1)}`),
  } as unknown as NodeProtocol;
  const durablePauses = {
    async bring({ executionId }: ExecutionRef) {
      told.push(`bring ${executionId.slice(-1)}`);
      await bringing();
    },
  } as unknown as DurablePauses;
  const directory = new SandboxDirectory(() => ({ accessToken: null, trafficToken: null }));
  const deps: ResumeWork = {
    ...{ clock, db, directory, seed, identity, log: silentLog, nodes: singleNode('n', node), durablePauses },
    ...{ busy: new BusyExecutions('here'), measures: createMeasures(), limitsOf: limitsFrom({ concurrentSandboxes }) },
  };
  const sandbox: SandboxRecord = {
    ...{ ...defaultOptions, sandboxId, executionId: `${sandboxId}/1`, teamId: team.teamId, nodeId: 'n' },
    ...{ state: 'paused', templateId: 't', buildId: 'b', alias: null, agentVersion: '1', cpuCount: 1, memoryMiB: 1 },
    ...{ diskMiB: 1, createdAtUs: 1, startedAtUs: 1, endAtUs: 1, timeoutSeconds: 60, secure: true, kept: 'memory' },
    ...{ volumeMounts: [], agentUnresponsive: false, durability: 'node', nextExecutionId: null, nextNodeId: null },
    replicaId: null,
    ...change,
  };
  expect(await insertSandbox(db, sandbox, { concurrentSandboxes: 99, sandboxes: 99 })).toBe('inserted');
  const context = { deps, team, sandbox, nextExecutionId, seconds: 30, memory: true, nodeId: 'n' };
  const resume = (changed: { memory?: boolean; autoPause?: boolean } = {}) =>
    resumeSandboxWorkflow({ ...context, ...changed });
  const row = () => findSandboxOfAnyTeam(db, sandboxId);
  const set = async (changed: object) =>
    void (await db.updateTable('sandboxes').set(changed).where('sandbox_id', '=', sandboxId).execute());
  const shown = () => directory.find(sandboxId)?.state;
  return { sandbox, team, deps, context, told, asked, it, nextExecutionId, resume, row, set, shown };
}

const asItWas = { state: 'paused', kept: 'memory', nextExecutionId: null, replicaId: null } as const;
const moved = { code: 'conflict', message: expect.stringContaining('is changing its state: ask again') };
const stored = { durability: 'cluster' } as const;

test('a paused sandbox runs again as its next execution, for as long as is asked', async () => {
  const { resume, asked, row, shown, nextExecutionId, sandbox, told, deps } = await scene({
    change: { envVars: { A: 'b' } },
  });
  const { sandbox: running, from } = await resume();
  expect(from).toBe('memory');
  expect(running).toMatchObject({
    ...{ state: 'running', executionId: nextExecutionId, startedAtUs: nowUs, endAtUs: nowUs + 30e6, kept: null },
    ...{ durability: null, autoPause: false },
  });
  expect(await row()).toEqual(running);
  const { executionId } = sandbox;
  expect(asked).toMatchObject([{ executionId, nextExecutionId, memory: true, envVars: { A: 'b' } }]);
  expect([shown(), told, deps.busy.has(executionId)]).toEqual(['running', [], false]);
  const files = await scene();
  expect((await files.resume({ memory: false, autoPause: true })).sandbox.autoPause).toBe(true);
  expect(files.asked[0]?.memory).toBe(false);
});

test('a team can’t run more than its limit: the sandbox stays paused', async () => {
  const { resume, row, asked, shown, sandbox } = await scene({ concurrentSandboxes: 0 });
  await expect(resume()).rejects.toMatchObject({
    ...{ code: 'rate_limited', message: expect.stringContaining('The team has 0 sandboxes running') },
  });
  expect([await row(), asked, shown()]).toEqual([sandbox, [], undefined]);
  // Another resume of it is under way, which is not undone.
  const busy = await scene();
  const other = { state: 'resuming', next_execution_id: 'another', replica_id: 'there' };
  await busy.set(other);
  await expect(busy.resume()).rejects.toMatchObject(moved);
  expect(await busy.row()).toMatchObject({ state: 'resuming', nextExecutionId: 'another', replicaId: 'there' });
});

test('a stored pause is brought first, and the sandbox stays paused if that fails', async () => {
  const good = await scene({ change: stored });
  await good.resume();
  expect([good.told, (await good.row())?.state]).toEqual([['bring 1'], 'running']);
  const away = new AtollError('unavailable', 'the store is away');
  const fails = await scene({ change: stored, bringing: () => Promise.reject(away) });
  await expect(fails.resume()).rejects.toBe(away);
  expect(await fails.row()).toMatchObject({ ...asItWas, ...stored });
  expect([fails.told, fails.asked, fails.shown()]).toEqual([['bring 1'], [], 'paused']);
});

test('what was brought is removed if the sandbox was killed meanwhile', async () => {
  const killed = await scene({ change: stored, bringing: () => killed.set({ state: 'killing' }) });
  await expect(killed.resume()).rejects.toMatchObject(moved);
  expect([killed.told, killed.asked]).toEqual([['bring 1', 'kill 1'], []]);
  const gone = await scene({
    change: stored,
    async bringing() {
      await db.deleteFrom('sandboxes').where('sandbox_id', '=', gone.sandbox.sandboxId).execute();
    },
  });
  await expect(gone.resume()).rejects.toMatchObject(moved);
  expect(gone.told).toEqual(['bring 1', 'kill 1']);
});

test('a machine is only asked for an execution that is still to be resumed', async () => {
  const changes = [{ state: 'paused', next_execution_id: null }, { next_execution_id: 'another' }];
  for (const change of changes) {
    const it = await scene({ change: stored, bringing: () => it.set(change) });
    await expect(it.resume()).rejects.toMatchObject(moved);
    expect(it.asked).toEqual([]);
    expect((await it.row())?.executionId).toBe(it.sandbox.executionId);
  }
});

test('a resume that its node refuses leaves the sandbox paused, and one whose answer was lost counts', async () => {
  const full = new AtollError('unavailable', 'it has no room');
  const refused = await scene({ resuming: () => Promise.reject(full) });
  await expect(refused.resume()).rejects.toBe(full);
  expect([await refused.row(), refused.shown(), refused.told]).toMatchObject([asItWas, 'paused', []]);
  const lost = await scene({
    async resuming(begin) {
      begin();
      throw full;
    },
  });
  await expect(lost.resume()).rejects.toBe(full);
  expect(await lost.row()).toMatchObject({ state: 'running', executionId: lost.nextExecutionId });
  expect(lost.shown()).toBe('running');
});

test('a sandbox that somebody else went on with does not count as running', async () => {
  const it = await scene({ resuming: () => it.set({ state: 'killing' }) });
  await expect(it.resume()).rejects.toMatchObject(moved);
  expect((await it.row())?.state).toBe('killing');
});

test('a step may be repeated', async () => {
  const { context, row, asked } = await scene();
  const steps = new Map(resumeSandboxSteps.map(step => [step.name, step]));
  for (const name of ['claim', 'claim', 'bring', 'start', 'publish', 'publish']) await steps.get(name)?.run(context);
  expect([(await row())?.state, asked.length]).toEqual(['running', 1]);
});
