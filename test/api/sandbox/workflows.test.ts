import { expect, test } from 'bun:test';
import { AtollError } from '../../../src/base/error.ts';
import { newSandboxId, newUuid } from '../../../src/base/id.ts';
import { silentLog } from '../../../src/base/telemetry/log.ts';
import { explainFailedStart } from '../../../src/api/sandbox/workflows/create/create.ts';
import { createSandboxSteps } from '../../../src/api/sandbox/workflows/create/steps.ts';
import type { CreateContext } from '../../../src/api/sandbox/workflows/create/steps.ts';
import { killSandboxSteps } from '../../../src/api/sandbox/workflows/kill-steps.ts';
import type { KillContext } from '../../../src/api/sandbox/workflows/kill-steps.ts';
import { storePause } from '../../../src/api/sandbox/workflows/pause/steps.ts';
import { resumeSandboxWorkflow } from '../../../src/api/sandbox/workflows/resume/steps.ts';
import { findSandbox } from '../../../src/api/sandbox/store/read.ts';
import type { DurablePauses } from '../../../src/api/blob/rules/pauses.ts';
import { runWorkflow } from '../../../src/api/sandbox/workflows/run.ts';
import type { Step } from '../../../src/api/sandbox/workflows/run.ts';
import { defaultOptions } from '../../../src/api/sandbox/record.ts';
import { moveSandbox } from '../../../src/api/sandbox/store/state.ts';
import { onEachDatabase } from '../databases.ts';
import { Platform } from '../platform.ts';

/** Everything that a platform holds about sandboxes, in all places. */
async function traces(platform: Platform): Promise<{ rows: number; labels: number; onNode: number; routes: number }> {
  const count = async (table: 'sandboxes' | 'sandbox_labels') =>
    (await platform.store.db.selectFrom(table).select('sandbox_id').execute()).length;
  return {
    rows: await count('sandboxes'),
    labels: await count('sandbox_labels'),
    onNode: platform.node.executions().length,
    routes: platform.api.directory.size,
  };
}
const nothing = { rows: 0, labels: 0, onNode: 0, routes: 0 };
const one = { rows: 1, labels: 1, onNode: 1, routes: 1 };

function createContext(platform: Platform): CreateContext {
  const { parts } = platform.api;
  const nowUs = parts.clock();
  return {
    deps: parts,
    team: platform.team,
    node: platform.node,
    image: { templateId: 't', buildId: 'b', layers: [], defaultUser: 'user', defaultWorkdir: '', buildEnv: {} },
    sandbox: {
      ...defaultOptions,
      sandboxId: newSandboxId(),
      executionId: newUuid(),
      teamId: platform.team.teamId,
      nodeId: 'node-1',
      state: 'starting',
      templateId: 't',
      buildId: 'b',
      alias: null,
      agentVersion: '0.6.13',
      cpuCount: 2,
      memoryMiB: 1024,
      diskMiB: 1024,
      createdAtUs: nowUs,
      startedAtUs: nowUs,
      endAtUs: nowUs,
      timeoutSeconds: 300,
      secure: true,
      metadata: { a: 'b' },
      volumeMounts: [],
      kept: null,
      agentUnresponsive: false,
      durability: null,
      nextExecutionId: null,
      nextNodeId: null,
      replicaId: null,
    },
  };
}

/** The steps, with `around` wrapped around one of them. */
function changed<C>(steps: readonly Step<C>[], at: number, change: (step: Step<C>) => Step<C>): Step<C>[] {
  return steps.map((step, index) => (index === at ? change(step) : step));
}

onEachDatabase(database => {
  test('a create that fails at any step, before or after its work, leaves nothing, also when each undo runs twice', async () => {
    await using platform = await Platform.start({ database });
    expect(createSandboxSteps.length).toBe(3);
    for (let at = 0; at < createSandboxSteps.length; at++) {
      for (const when of ['before', 'after'] as const) {
        for (const undos of [1, 2]) {
          const broken = changed(createSandboxSteps, at, step => ({
            ...step,
            async run(context, signal) {
              if (when === 'after') await step.run(context, signal);
              throw new Error('broken');
            },
          })).map(step => ({
            ...step,
            async undo(context: CreateContext) {
              for (let i = 0; i < undos; i++) await step.undo?.(context);
            },
          }));
          await expect(runWorkflow('create', broken, createContext(platform), { log: silentLog })).rejects.toThrow(
            'broken',
          );
          expect({ at, when, undos, ...(await traces(platform)) }).toEqual({ at, when, undos, ...nothing });
        }
      }
    }
  });

  test('a create that can not be taken back leaves a sandbox that is in reach', async () => {
    await using platform = await Platform.start({ database });
    const context = createContext(platform);
    let isAway = false;
    const { clock } = context.deps;
    context.deps = {
      ...context.deps,
      clock() {
        if (isAway) throw new Error('the database is away');
        return clock();
      },
    };
    const broken = changed(createSandboxSteps, createSandboxSteps.length - 1, step => ({
      ...step,
      async run(inner, signal) {
        await step.run(inner, signal);
        isAway = true;
        throw new Error('broken');
      },
    }));
    await expect(runWorkflow('create', broken, context, { log: silentLog })).rejects.toThrow('broken');
    expect(await traces(platform)).toEqual(one);
  });

  test('a kill comes to the same end when each step runs twice, and when it is begun again after a failure at any step', async () => {
    await using platform = await Platform.start({ database });
    expect(killSandboxSteps.length).toBe(3);
    for (let at = 0; at < killSandboxSteps.length; at++) {
      for (const when of ['before', 'after'] as const) {
        const context = createContext(platform);
        await runWorkflow('create', createSandboxSteps, context, { log: silentLog });
        expect(await traces(platform)).toEqual(one);
        const sandbox = await moveSandbox(
          platform.store.db,
          context.sandbox,
          ['running'],
          'killing',
          platform.api.parts.busy.replicaId,
        );
        if (!sandbox) throw new Error('the sandbox did not run');
        const kill: KillContext = { deps: platform.api.parts, sandbox, reason: 'asked' };
        await platform.api.parts.busy.while(sandbox.executionId, async () => {
          const broken = changed(killSandboxSteps, at, step => ({
            ...step,
            async run(inner) {
              if (when === 'after') await step.run(inner);
              throw new Error('broken');
            },
          }));
          await expect(runWorkflow('kill', broken, kill, { log: silentLog })).rejects.toThrow('broken');
          const twice = killSandboxSteps.map(step => ({
            ...step,
            async run(inner: KillContext) {
              await step.run(inner);
              await step.run(inner);
            },
          }));
          await runWorkflow('kill', twice, kill, { log: silentLog });
        });
        expect({ at, when, ...(await traces(platform)) }).toEqual({ at, when, ...nothing });
      }
    }
  });

  test('a kill while what was kept of a sandbox comes to its machine leaves nothing of it there', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID } = await platform.createSandbox();
    const [request] = platform.node.created;
    if (!request) throw new Error('nothing was created');
    expect((await platform.call('POST', `/sandboxes/${sandboxID}/pause`, {})).status).toBe(204);
    const { db } = platform.store;
    await db.updateTable('sandboxes').set({ durability: 'cluster' }).execute();
    const sandbox = await findSandbox(db, platform.team.teamId, sandboxID);
    if (!sandbox) throw new Error('the sandbox is gone');
    const bring = async () => {
      expect((await platform.call('DELETE', `/sandboxes/${sandboxID}`)).status).toBe(204);
      // A call that was delayed all the time arrives.
      await platform.node.create(request);
      await platform.node.pause(request, { memory: true });
    };
    const deps = { ...platform.api.parts, durablePauses: { bring } as unknown as DurablePauses };
    const [nodeId, nextExecutionId] = ['node-1', newUuid()];
    const resume = { deps, team: platform.team, sandbox, nodeId, nextExecutionId, seconds: 60, memory: true };
    await expect(resumeSandboxWorkflow(resume)).rejects.toMatchObject({ code: 'conflict' });
    expect([await platform.node.listPaused(), platform.node.executions()]).toEqual([[], []]);
  });

  test('an undo that fails leaves the mark by which the reconciler finishes', async () => {
    await using platform = await Platform.start({ database });
    let refusals = 1;
    platform.node.before = async call => {
      if (call === 'kill' && refusals-- > 0) throw new Error('busy');
    };
    platform.node.after = async call => {
      if (call === 'create') throw new Error('broken');
    };
    expect((await platform.call('POST', '/v2/sandboxes', { templateID: 'base', metadata: { a: 'b' } })).status).toBe(
      500,
    );
    const deadline = Date.now() + 30_000;
    while (Date.now() < deadline && JSON.stringify(await traces(platform)) !== JSON.stringify(nothing))
      await Bun.sleep(20);
    expect(await traces(platform)).toEqual(nothing);
  });
});

test('what may have changed something is not answered with 503, which clients take for a promise of the contrary', async () => {
  const away = async () => {
    throw new AtollError('unavailable', 'the store is away');
  };
  const paused = { sandboxId: 's' } as Parameters<typeof storePause>[2];
  const stored = storePause({ log: silentLog }, { store: away } as unknown as DurablePauses, paused);
  await expect(stored).rejects.toMatchObject({ status: 500, detail: 'sandbox_pause_not_stored' });

  const { signal } = new AbortController();
  const lost = new AtollError('unavailable', 'it was made or it was not', { mayHaveChanged: true });
  expect(explainFailedStart(lost, signal, signal)).toBe(lost);
  expect(lost.status).toBe(500);
});
