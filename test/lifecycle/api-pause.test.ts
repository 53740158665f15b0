import { expect, test } from 'bun:test';
import { AtollError } from '../../src/base/error.ts';
import { verdictOn } from '../../src/protocol/state.ts';
import type { SandboxOperation, SandboxState } from '../../src/protocol/state.ts';
import { onEachDatabase } from '../api/databases.ts';
import { Platform, until } from '../api/platform.ts';
import { followClosed } from '../api/follow-closed.ts';

type Detail = { state: string; startedAt: string; endAt: string; envdAccessToken?: string; lifecycle: unknown };
const detailOf = async (platform: Platform, id: string) =>
  (await platform.call('GET', `/sandboxes/${id}`)).body as Detail;
const pause = (platform: Platform, id: string, body?: unknown) => platform.call('POST', `/sandboxes/${id}/pause`, body);
const connect = (platform: Platform, id: string, body: unknown = {}) =>
  platform.call('POST', `/v2/sandboxes/${id}/connect`, body);
const listed = async (platform: Platform, state: string) =>
  ((await platform.call('GET', `/v2/sandboxes?state=${state}`)).body as { sandboxID: string }[]).map(
    ({ sandboxID }) => sandboxID,
  );

onEachDatabase(database => {
  test('a paused sandbox is shown as it is, once, with the time of its pause, and runs again as the same', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID: id, envdAccessToken } = await platform.createSandbox({
      timeout: 600,
      metadata: { a: 'b' },
      envVars: { COLOUR: 'blue' },
    });
    const before = await detailOf(platform, id);
    using followed = followClosed(platform.api.directory);
    const closed = () => followed.closed.map(({ sandboxId }) => sandboxId);
    expect((await pause(platform, id)).status).toBe(204);
    expect(closed()).toEqual([id]);
    const paused = await detailOf(platform, id);
    expect<unknown>(paused).toEqual({
      ...before,
      state: 'paused',
      pauseMode: 'full',
      durability: 'node',
      endAt: paused.endAt,
    });
    expect(Math.abs(Date.parse(paused.endAt) - Date.now())).toBeLessThan(30_000);
    expect([
      await listed(platform, 'running'),
      await listed(platform, 'paused'),
      await listed(platform, 'running,paused'),
    ]).toEqual([[], [id], [id]]);
    expect((await platform.call('GET', '/v2/sandboxes')).headers.get('x-total-running')).toBe('0');
    expect(platform.node.paused()).toMatchObject([{ sandboxId: id, kept: 'memory' }]);
    expect(platform.api.directory.find(id)).toMatchObject({ state: 'paused' });

    const resumed = await connect(platform, id, { timeout: 60 });
    expect(resumed).toMatchObject({ status: 201, body: { sandboxID: id, envdAccessToken } });
    expect(resumed.headers.get('x-resumed-from')).toBe('memory');
    const after = await detailOf(platform, id);
    expect(after).toMatchObject({ ...before, startedAt: after.startedAt, endAt: after.endAt });
    // A new lifetime.
    expect(after.startedAt > paused.endAt).toBe(true);
    expect(Date.parse(after.endAt) - Date.parse(after.startedAt)).toBe(60_000);
    expect(platform.node.resumed[0]).toMatchObject({
      memory: true,
      envVars: { COLOUR: 'blue', E2B_SANDBOX_ID: id },
      accessToken: envdAccessToken as string,
    });
    expect(await listed(platform, 'running')).toEqual([id]);
  });

  test('memory: false is kept to, at the pause and at the resume', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID: id } = await platform.createSandbox();
    await pause(platform, id, { memory: false });
    expect(platform.node.paused()).toMatchObject([{ kept: 'filesystem' }]);
    expect((await connect(platform, id)).headers.get('x-resumed-from')).toBe('filesystem');
    await pause(platform, id);
    const again = await connect(platform, id, { memory: false });
    expect([again.status, again.headers.get('x-resumed-from')]).toEqual([201, 'filesystem']);
    expect(platform.node.resumed.map(({ memory }) => memory)).toEqual([true, false]);
  });

  test('where memory can’t be kept it is refused with the reason, and nothing is changed; files can be kept', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID: id } = await platform.createSandbox();
    using followed = followClosed(platform.api.directory);
    const closed = () => followed.closed.map(({ sandboxId }) => sandboxId);
    platform.node.memory = { kept: false, reason: 'no CRIU' };
    for (const path of ['pause', 'fork']) {
      const refused = await platform.call('POST', `/sandboxes/${id}/${path}`, path === 'pause' ? { memory: true } : {});
      expect(refused).toMatchObject({
        status: 400,
        body: { error_code: 'sandbox_memory_unavailable', message: expect.stringContaining('no CRIU') },
      });
    }
    expect([await listed(platform, 'running'), closed()]).toEqual([[id], []]);
    expect(await platform.call('POST', '/v2/sandboxes', { templateID: 'base', autoPause: true })).toMatchObject({
      status: 400,
      body: { error_code: 'sandbox_memory_unavailable', message: expect.stringContaining('autoPauseMemory') },
    });
    expect(
      (await platform.call('POST', '/v2/sandboxes', { templateID: 'base', autoPause: true, autoPauseMemory: false }))
        .status,
    ).toBe(201);
    expect((await platform.call('POST', `/sandboxes/${id}/snapshots`, {})).status).toBe(201);
    expect((await pause(platform, id, { memory: false })).status).toBe(204);
  });

  test('a pause that fails leaves the sandbox running, reachable, with its time', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID: id } = await platform.createSandbox({ timeout: 600 });
    const before = await detailOf(platform, id);
    for (const [error, status] of [
      [new AtollError('no_space', 'full'), 507],
      [new AtollError('precondition', 'it has a socket of an unknown kind'), 400],
      [new Error("ENOENT, open '/secret/file'"), 500],
      [new AtollError('internal', 'the disk /secret/disk is still in use by process 4711'), 500],
    ] as const) {
      platform.node.before = async call => {
        if (call === 'pause') throw error;
      };
      const refused = await pause(platform, id);
      expect(refused.status).toBe(status);
      if (status === 500)
        expect(refused.body).toEqual({ code: 500, message: 'The pause failed; the log of the platform has why' });
      expect(await detailOf(platform, id)).toEqual(before);
      expect(platform.api.directory.find(id)).toMatchObject({ state: 'running' });
    }
    platform.node.before = async () => {};
    // Done, but the answer was lost: it is paused, and reported as paused.
    platform.node.after = async call => {
      if (call === 'pause') throw new Error('connection lost');
    };
    expect((await pause(platform, id)).status).toBe(500);
    expect(await detailOf(platform, id)).toMatchObject({ state: 'paused' });
  });

  test('a resume that fails leaves the sandbox paused; the reason is told and nothing is lost', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID: id } = await platform.createSandbox();
    await pause(platform, id);
    const before = await detailOf(platform, id);
    for (const [error, status, code] of [
      [new AtollError('unavailable', 'no slot'), 503, 'sandbox_capacity_unavailable'],
      [new AtollError('internal', 'changed', { detail: 'sandbox_state_damaged' }), 500, 'sandbox_state_damaged'],
      [new Error('bug'), 500, 'sandbox_resume_failed'],
    ] as const) {
      platform.node.before = async call => {
        if (call === 'resume') throw error;
      };
      expect(await connect(platform, id)).toMatchObject({ status, body: { error_code: code } });
      expect(await detailOf(platform, id)).toEqual(before);
    }
    platform.node.before = async call => {
      const detail = 'sandbox_capacity_unavailable';
      if (call === 'resume') throw new AtollError('unavailable', 'this node runs 9 sandboxes, its maximum', { detail });
    };
    // The machine's own message is passed on.
    expect(await connect(platform, id)).toMatchObject({
      status: 503,
      body: {
        error_code: 'sandbox_capacity_unavailable',
        message: expect.stringMatching(/no room to resume .*stays paused \(this node runs 9 sandboxes, its maximum\)/),
      },
    });
    expect(await detailOf(platform, id)).toEqual(before);
    platform.node.before = async () => {};
    platform.node.after = async call => {
      if (call === 'resume') throw new Error('connection lost');
    };
    expect((await connect(platform, id)).status).toBe(500);
    expect(await detailOf(platform, id)).toMatchObject({ state: 'running' });
    expect(platform.node.executions()).toHaveLength(1);
  });

  test('connects at the same time are one resume, and all succeed', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID: id } = await platform.createSandbox();
    await pause(platform, id);
    platform.node.before = async () => Bun.sleep(20);
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => connect(platform, id, { timeout: 100 + n })),
    );
    expect(platform.node.resumed).toHaveLength(1);
    expect(new Set(answers.map(({ status }) => status)).size).toBeLessThanOrEqual(2);
    for (const { status } of answers) expect([200, 201]).toContain(status);
    // The longest requested time holds.
    const { startedAt, endAt } = await detailOf(platform, id);
    expect(Date.parse(endAt) - Date.parse(startedAt)).toBeGreaterThanOrEqual(119_000);
  });

  test('a connect during a pause waits for it and resumes; pauses, connects and kills at the same time come to one end', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID: id } = await platform.createSandbox();
    const going = Promise.withResolvers<void>();
    platform.node.before = () => going.promise;
    const pausing = pause(platform, id);
    await until(() => platform.api.directory.find(id)?.state === 'pausing');
    const connecting = connect(platform, id);
    going.resolve();
    platform.node.before = async () => Bun.sleep(15);
    expect((await connecting).status).toBe(201);
    expect((await pausing).status).toBe(204);

    for (let round = 0; round < 4; round++) {
      const answers = await Promise.all([
        pause(platform, id),
        connect(platform, id),
        pause(platform, id),
        connect(platform, id),
      ]);
      for (const { status } of answers) expect([200, 201, 204, 409]).toContain(status);
      await until(async () =>
        (await platform.store.db.selectFrom('sandboxes').select('state').execute()).every(
          ({ state }) => state === 'running' || state === 'paused',
        ),
      );
      expect(platform.node.executions().length + platform.node.paused().length).toBe(1);
      await connect(platform, id);
    }
    await Promise.all([pause(platform, id), connect(platform, id), platform.call('DELETE', `/sandboxes/${id}`)]);
    await until(async () => (await platform.store.db.selectFrom('sandboxes').select('state').execute()).length === 0);
    expect(platform.node.executions().length + platform.node.paused().length).toBe(0);
    expect((await platform.call('DELETE', `/sandboxes/${id}`)).status).toBe(404);
  });

  test('a kill of a paused sandbox removes all of it; it is unknown then', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID: id } = await platform.createSandbox();
    await pause(platform, id);
    expect((await platform.call('DELETE', `/sandboxes/${id}`)).status).toBe(204);
    expect(platform.node.paused()).toEqual([]);
    for (const [method, path] of [
      ['GET', ''],
      ['DELETE', ''],
      ['POST', '/pause'],
      ['POST', '/resume'],
      ['POST', '/fork'],
      ['POST', '/snapshots'],
    ] as const) {
      expect(await platform.call(method, `/sandboxes/${id}${path}`)).toMatchObject({
        status: 404,
        body: { code: 404 },
      });
    }
    expect((await connect(platform, id)).status).toBe(404);
  });

  test('what each operation answers in each state is what the state table says', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID: id } = await platform.createSandbox({ timeout: 3600 });
    const [execution] = platform.node.executions();
    // No reconciler ends the states that are set by hand.
    const looked = Promise.withResolvers<void>();
    const busy = platform.api.parts.busy.while(execution?.executionId ?? '', () => looked.promise);
    const requests: Partial<Record<SandboxOperation, [string, string, unknown?]>> = {
      setTimeout: ['POST', '/timeout', { timeout: 60 }],
      refresh: ['POST', '/refreshes'],
      pause: ['POST', '/pause'],
      resume: ['POST', '/resume'],
      fork: ['POST', '/fork'],
      snapshot: ['POST', '/snapshots'],
      updateNetwork: ['PUT', '/network', {}],
    };
    let seen = 0;
    for (const state of [
      'starting',
      'pausing',
      'paused',
      'resuming',
      'snapshotting',
      'moving',
      'killing',
    ] satisfies SandboxState[]) {
      await platform.store.db
        .updateTable('sandboxes')
        .set({ state, kept: state === 'paused' ? 'memory' : null })
        .where('sandbox_id', '=', id)
        .execute();
      for (const [operation, [method, path, body]] of Object.entries(requests) as [
        SandboxOperation,
        [string, string, unknown?],
      ][]) {
        const verdict = verdictOn(operation, state);
        if (verdict === 'allowed' || verdict === 'wait') continue;
        const answer = await platform.call(method, `/sandboxes/${id}${path}`, body);
        expect({ state, operation, status: answer.status }).toEqual({
          state,
          operation,
          status: verdict === 'conflict' ? 409 : 404,
        });
        seen++;
      }
    }
    looked.resolve();
    await busy;
    expect(seen).toBeGreaterThan(25);
  });

  test('the deprecated resume gives 15 s where none are asked for, and 409 to what runs', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID: id } = await platform.createSandbox({ timeout: 600 });
    const resume = (body?: unknown) => platform.call('POST', `/sandboxes/${id}/resume`, body);
    expect((await resume()).status).toBe(409);
    await pause(platform, id);
    expect((await resume({ timeout: 365 * 24 * 3600 })).status).toBe(400);
    expect((await resume({ timeout: 0 })).status).toBe(400);
    expect((await resume({ autoPause: true })).status).toBe(201);
    const { startedAt, endAt, lifecycle } = await detailOf(platform, id);
    expect(Date.parse(endAt) - Date.parse(startedAt)).toBe(15_000);
    expect(lifecycle).toEqual({ autoResume: false, onTimeout: 'pause' });
  });

  test('a paused sandbox takes no place of the team’s limit; a resume needs one', async () => {
    await using platform = await Platform.start({ database, limits: { concurrentSandboxes: 2 } });
    const ids = [(await platform.createSandbox()).sandboxID, (await platform.createSandbox()).sandboxID];
    await pause(platform, ids[0] ?? '');
    ids.push((await platform.createSandbox()).sandboxID);
    expect((await connect(platform, ids[0] ?? '')).status).toBe(429);
    expect(await detailOf(platform, ids[0] ?? '')).toMatchObject({ state: 'paused' });
    await platform.call('DELETE', `/sandboxes/${ids[1]}`);
    expect((await connect(platform, ids[0] ?? '')).status).toBe(201);
  });

  test('another team learns nothing of a paused sandbox', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID: id } = await platform.createSandbox();
    await pause(platform, id);
    const { key } = await platform.otherTeam();
    for (const path of ['/pause', '/resume', '/connect', '/fork', '/snapshots']) {
      expect(
        (
          await platform.call('POST', `/sandboxes/${id}${path}`, path === '/connect' ? { timeout: 5 } : {}, {
            'x-api-key': key,
          })
        ).status,
      ).toBe(404);
    }
    expect(platform.node.paused()).toHaveLength(1);
  });
});
