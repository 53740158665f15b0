import { expect, test } from 'bun:test';
import { newUuid } from '../../src/base/id.ts';
import { silentLog } from '../../src/base/telemetry/log.ts';
import { reconcileNodes } from '../../src/api/sandbox/reconcilers/adoption.ts';
import { reconcileLeftovers } from '../../src/api/sandbox/reconcilers/leftovers.ts';
import { beginPause } from '../../src/api/sandbox/store/pause.ts';
import { outcomeUnknown } from '../../src/api/database/postgres/driver.ts';
import { AtollError } from '../../src/base/error.ts';
import { findSandbox } from '../../src/api/sandbox/store/read.ts';
import { pauseSandboxSteps } from '../../src/api/sandbox/workflows/pause/steps.ts';
import { resumeSandboxSteps } from '../../src/api/sandbox/workflows/resume/steps.ts';
import { runWorkflow } from '../../src/api/sandbox/workflows/run.ts';
import type { Step } from '../../src/api/sandbox/workflows/run.ts';
import { snapshotSandbox } from '../../src/api/snapshot/workflows/take.ts';
import { snapshotSandboxSteps } from '../../src/api/sandbox/workflows/snapshot-steps.ts';
import { onEachDatabase } from '../api/databases.ts';
import { Platform } from '../api/platform.ts';
import type { SandboxRecord } from '../../src/api/sandbox/record.ts';

/** A sandbox in all the places where the platform has something of it. */
async function whereabouts(platform: Platform, sandboxId: string) {
  const row = await findSandbox(platform.store.db, platform.team.teamId, sandboxId);
  const onNode = { running: platform.node.executions(), paused: platform.node.paused() };
  return {
    row: row && { state: row.state, next: row.nextExecutionId },
    agreed:
      row !== null &&
      (row.state === 'paused' ? onNode.paused : onNode.running).some(
        ({ executionId }) => executionId === row.executionId,
      ),
    onNode: onNode.running.length + onNode.paused.length,
    route: platform.api.directory.find(sandboxId)?.state,
    snapshots: (await platform.node.listSnapshots()).length,
  };
}
const running = { row: { state: 'running', next: null }, agreed: true, onNode: 1, route: 'running' };
const paused = { row: { state: 'paused', next: null }, agreed: true, onNode: 1, route: 'paused' };

type Kind = {
  name: string;
  steps: readonly Step<never>[];
  /** The names of its steps: a new one must be examined here too. */
  names: string[];
  /** Its initial values, which it may also be left with. */
  before: object;
  after: object;
  context(platform: Platform, sandbox: SandboxRecord): Promise<unknown>;
  begin(platform: Platform, sandboxId: string): Promise<void>;
};

const pauseNow = async (platform: Platform, id: string) =>
  expect((await platform.call('POST', `/sandboxes/${id}/pause`)).status).toBe(204);
const kinds: Kind[] = [
  {
    name: 'pause',
    steps: pauseSandboxSteps as readonly Step<never>[],
    names: ['cut', 'keep', 'store', 'publish'],
    before: running,
    after: paused,
    context: async (platform, sandbox) => ({
      deps: platform.api.parts,
      sandbox: await beginPause(platform.store.db, sandbox, 'memory', platform.api.parts.busy.replicaId),
      durable: null,
    }),
    begin: async () => {},
  },
  {
    name: 'resume',
    steps: resumeSandboxSteps as readonly Step<never>[],
    names: ['claim', 'bring', 'start', 'publish'],
    before: paused,
    after: running,
    context: async (platform, sandbox) => ({
      deps: platform.api.parts,
      team: platform.team,
      sandbox,
      nextExecutionId: newUuid(),
      seconds: 60,
      memory: true,
      nodeId: sandbox.nodeId,
    }),
    begin: pauseNow,
  },
  {
    name: 'snapshot',
    steps: snapshotSandboxSteps as readonly Step<never>[],
    names: ['mark', 'take', 'unmark'],
    before: { ...running, snapshots: 0 },
    after: { ...running, snapshots: 1 },
    context: async (platform, sandbox) => ({
      deps: platform.api.parts,
      sandbox,
      snapshotId: newUuid(),
      what: { memory: true },
    }),
    begin: async () => {},
  },
];

/** The steps, with `around` wrapped around one of them. */
const changed = (steps: readonly Step<never>[], at: number, change: (step: Step<never>) => Step<never>) =>
  steps.map((step, index) => (index === at ? change(step) : step));
const undoTwice = (step: Step<never>): Step<never> => ({
  ...step,
  async undo(context: never) {
    await step.undo?.(context);
    await step.undo?.(context);
  },
});
const runTwice = (step: Step<never>): Step<never> => ({
  ...step,
  async run(context: never, signal) {
    await step.run(context, signal);
    await step.run(context, signal);
  },
});

onEachDatabase(database => {
  for (const { name, steps, names, before, after, context, begin } of kinds) {
    test(`${name}: failed at any step, before or after its work, with undos once or twice, it leaves the sandbox before or after it, and never between`, async () => {
      await using platform = await Platform.start({ database });
      expect(steps.map(({ name }) => name)).toEqual(names);
      const ends = new Set<string>();
      for (let at = 0; at < steps.length; at++) {
        for (const when of ['before', 'after'] as const) {
          for (const undo of [(step: Step<never>) => step, undoTwice]) {
            const { sandboxID: id } = await platform.createSandbox();
            await begin(platform, id);
            const sandbox = await findSandbox(platform.store.db, platform.team.teamId, id);
            const broken = changed(steps, at, step => ({
              ...step,
              async run(inner: never, signal) {
                if (when === 'after') await step.run(inner, signal);
                throw new Error('broken');
              },
            })).map(undo);
            const executionId = sandbox?.executionId ?? '';
            const made = await context(platform, sandbox!);
            await platform.api.parts.busy.while(executionId, async () => {
              await expect(runWorkflow(name, broken, made as never, { log: silentLog })).rejects.toThrow('broken');
            });
            const left = await whereabouts(platform, id);
            if (!Bun.deepMatch(before, left) && !Bun.deepMatch(after, left))
              throw new Error(`${name} broken ${when} step ${at} left ${JSON.stringify(left)}`);
            ends.add(left.row?.state ?? '');
            expect((await platform.call('DELETE', `/sandboxes/${id}`)).status).toBe(204);
            for (const { snapshotId } of await platform.node.listSnapshots())
              await platform.node.deleteSnapshot(snapshotId);
          }
        }
      }
      expect(ends.size).toBeGreaterThan(0);
    });

    test(`${name}: each step may run twice`, async () => {
      await using platform = await Platform.start({ database });
      const { sandboxID: id } = await platform.createSandbox();
      await begin(platform, id);
      const sandbox = await findSandbox(platform.store.db, platform.team.teamId, id);
      const made = await context(platform, sandbox!);
      await platform.api.parts.busy.while(sandbox?.executionId ?? '', () =>
        runWorkflow(name, steps.map(runTwice), made as never, { log: silentLog }),
      );
      expect(await whereabouts(platform, id)).toMatchObject(after);
    });
  }

  test('the memory of a snapshot goes where it was not recorded, and stays where nobody knows whether it was', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID: id } = await platform.createSandbox();
    const { parts } = platform.api;
    const left = async (error: AtollError) => {
      let asked = 0;
      // Asked before anything is done, and again in the transaction that records it.
      const limitsOf: typeof parts.limitsOf = team => {
        if (++asked > 1) throw error;
        return parts.limitsOf(team);
      };
      await expect(snapshotSandbox({ ...parts, limitsOf }, platform.team, id, {})).rejects.toBe(error);
      return (await platform.node.listSnapshots()).length;
    };
    expect(await left(new AtollError('unavailable', 'the database is away'))).toBe(0);
    const detail = outcomeUnknown;
    expect(await left(new AtollError('unavailable', 'the database did not answer', { detail }))).toBe(1);
  });

  test('what a crash has left in a transition becomes what its node says it is', async () => {
    await using platform = await Platform.start({ database });
    const ids: string[] = [];
    for (let n = 0; n < 8; n++) ids.push((await platform.createSandbox({ timeout: 3600 })).sandboxID);
    const rowOf = async (n: number) => (await findSandbox(platform.store.db, platform.team.teamId, ids[n] ?? ''))!;
    const set = (n: number, changes: object) =>
      platform.store.db
        .updateTable('sandboxes')
        .set(changes)
        .where('sandbox_id', '=', ids[n] ?? '')
        .execute();
    const rows = await Promise.all(ids.map((_, n) => rowOf(n)));
    const target = (n: number) => ({ sandboxId: rows[n]!.sandboxId, executionId: rows[n]!.executionId });
    await platform.api.stop();
    const next = newUuid();
    const resume = (n: number) =>
      platform.node.resume({
        ...target(n),
        nextExecutionId: next,
        memory: true,
        network: { internetAccess: true },
        envVars: {},
        accessToken: null,
      });

    // Paused on the node, but the store was not told.
    await set(0, { state: 'pausing', kept: 'memory' });
    await platform.node.pause(target(0), { memory: true });
    // Never paused.
    await set(1, { state: 'pausing', kept: 'memory' });
    // Resumed, but the store was not told.
    await platform.node.pause(target(2), { memory: true });
    await resume(2);
    await set(2, { state: 'resuming', kept: 'memory', next_execution_id: next });
    // Never resumed.
    await platform.node.pause(target(3), { memory: false });
    await set(3, { state: 'resuming', kept: 'filesystem', next_execution_id: newUuid() });
    await set(4, { state: 'snapshotting' });
    // Gone from the node in the middle of it.
    await platform.node.kill(target(5));
    await set(5, { state: 'pausing', kept: 'memory' });
    // Paused, while its row still says that it runs.
    await platform.node.pause(target(6), { memory: true });
    // Killed while it was resumed.
    await platform.node.pause(target(7), { memory: true });
    await set(7, { state: 'killing', kept: 'memory', next_execution_id: newUuid() });

    await platform.restart();
    await reconcileLeftovers(platform.api.parts);
    await reconcileNodes(platform.api.parts);
    const states = await Promise.all(
      ids.map(async id => (await findSandbox(platform.store.db, platform.team.teamId, id))?.state),
    );
    expect(states).toEqual(['paused', 'running', 'running', 'paused', 'running', undefined, 'paused', undefined]);
    expect((await rowOf(2)).executionId).toBe(next);
    expect(platform.node.executions()).toHaveLength(3);
    expect(platform.node.paused()).toHaveLength(3);
    for (const n of [0, 3, 6]) {
      expect((await platform.call('POST', `/v2/sandboxes/${ids[n]}/connect`, {})).status).toBe(201);
    }
  });

  test('a paused sandbox that the store does not know is set aside, one that its node does not have is forgotten', async () => {
    await using platform = await Platform.start({ database });
    const [kept, lost, stray] = await Promise.all([
      platform.createSandbox(),
      platform.createSandbox(),
      platform.createSandbox(),
    ]);
    for (const { sandboxID } of [kept, lost, stray]) await pauseNow(platform, sandboxID);
    const lostOne = platform.node.paused().find(({ sandboxId }) => sandboxId === lost.sandboxID);
    await platform.node.kill(lostOne!);
    await platform.store.db.deleteFrom('sandboxes').where('sandbox_id', '=', stray.sandboxID).execute();
    await reconcileNodes(platform.api.parts);
    expect([...platform.node.setAsideIds.keys()]).toEqual([stray.sandboxID]);
    expect((await platform.node.listPaused()).map(({ sandboxId }) => sandboxId)).toEqual([kept.sandboxID]);
    expect((await platform.call('GET', `/sandboxes/${lost.sandboxID}`)).status).toBe(404);
    expect((await platform.call('GET', `/sandboxes/${kept.sandboxID}`)).status).toBe(200);
  });

  test('reconciling while sandboxes are paused, resumed and forked harms none of them', async () => {
    await using platform = await Platform.start({ database });
    // Slow calls, so that reconciling meets every moment of each change.
    platform.node.before = async () => Bun.sleep(Math.random() * 5);
    platform.node.after = async () => Bun.sleep(Math.random() * 5);
    let working = true;
    let rounds = 0;
    const reconciling = (async () => {
      for (; working; rounds++) {
        await reconcileNodes(platform.api.parts);
        await reconcileLeftovers(platform.api.parts);
      }
    })();
    const wanted = new Map<string, string>();
    await Promise.all(
      Array.from({ length: 4 }, async () => {
        const { sandboxID: id } = await platform.createSandbox({ timeout: 3600 });
        for (let i = 0; i < 6; i++) {
          expect((await platform.call('POST', `/sandboxes/${id}/pause`, { memory: i % 2 === 0 })).status).toBe(204);
          expect((await platform.call('POST', `/v2/sandboxes/${id}/connect`, {})).status).toBe(201);
          const forks = await platform.call('POST', `/sandboxes/${id}/fork`, { count: 1, timeout: 3600 });
          const [{ sandbox }] = forks.body as [{ sandbox: { sandboxID: string } }];
          wanted.set(sandbox.sandboxID, 'running');
        }
        expect((await platform.call('POST', `/sandboxes/${id}/pause`)).status).toBe(204);
        wanted.set(id, 'paused');
      }),
    );
    working = false;
    await reconciling;
    expect(rounds).toBeGreaterThan(5);
    const listed = (await platform.call('GET', '/v2/sandboxes')).body as Array<{ sandboxID: string; state: string }>;
    expect(new Map(listed.map(({ sandboxID, state }) => [sandboxID, state]))).toEqual(wanted);
    expect([platform.node.executions().length, platform.node.paused().length]).toEqual([24, 4]);
  });
});
