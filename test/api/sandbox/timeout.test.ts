import { expect, test } from 'bun:test';
import { sql } from 'kysely';
import type { DurablePauses } from '../../../src/api/blob/rules/pauses.ts';
import { singleNode } from '../../../src/api/placement/nodes.ts';
import { autoPauses, ends } from '../../../src/api/sandbox/reconcilers/expiry.ts';
import { endsDue } from '../../../src/api/sandbox/store/read.ts';
import type { NodeProtocol } from '../../../src/protocol/node.ts';
import { onEachDatabase } from '../databases.ts';
import { Platform, until } from '../platform.ts';

onEachDatabase(database => {
  const times = async (platform: Platform, sandboxID: string) => {
    const { body } = await platform.call('GET', `/sandboxes/${sandboxID}`);
    const { startedAt, endAt } = body as { startedAt: string; endAt: string };
    return { startMs: Date.parse(startedAt), endMs: Date.parse(endAt) };
  };

  test('each version has its default lifetime, and v1 alone may be unsecured', async () => {
    await using platform = await Platform.start({ database });
    for (const [path, seconds] of [
      ['/sandboxes', 15],
      ['/v2/sandboxes', 300],
    ] as const) {
      const { sandboxID } = (await platform.call('POST', path, { templateID: 'base' })).body as { sandboxID: string };
      const { startMs, endMs } = await times(platform, sandboxID);
      expect(endMs - startMs).toBe(seconds * 1000);
    }
    const tokenOf = async (path: string, body: object) => {
      const answer = await platform.call('POST', path, { templateID: 'base', ...body });
      return (answer.body as { envdAccessToken: string | null }).envdAccessToken;
    };
    expect(await tokenOf('/sandboxes', {})).toBeNull();
    expect(await tokenOf('/sandboxes', { secure: false })).toBeNull();
    expect(await tokenOf('/sandboxes', { secure: true })).toMatch(/^[0-9a-f]{64}$/);
    expect(await tokenOf('/v2/sandboxes', { secure: false })).toMatch(/^[0-9a-f]{64}$/);
    expect(platform.node.created.map(({ accessToken }) => accessToken !== null)).toEqual([
      false,
      true,
      false,
      false,
      true,
      true,
    ]);
  });

  test('a timeout sets, sooner or later; refresh and connect only extend', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID, envdAccessToken } = await platform.createSandbox({ timeout: 600 });
    const endAfter = async (suffix: string, body: unknown, expectedStatus: number) => {
      const beforeMs = Date.now();
      const prefix = suffix.startsWith('/v2')
        ? `/v2/sandboxes/${sandboxID}${suffix.slice(3)}`
        : `/sandboxes/${sandboxID}${suffix}`;
      const answer = await platform.call('POST', prefix, body);
      expect({ suffix, status: answer.status }).toEqual({ suffix, status: expectedStatus });
      if (answer.status === 200) expect(answer.body).toMatchObject({ sandboxID, envdAccessToken, domain: null });
      return ((await times(platform, sandboxID)).endMs - beforeMs) / 1000;
    };
    const near = (seconds: number, expected: number) => expect(Math.abs(seconds - expected)).toBeLessThan(10);
    near(await endAfter('/timeout', { timeout: 100 }, 204), 100);
    near(await endAfter('/timeout', { timeout: 2000 }, 204), 2000);
    near(await endAfter('/refreshes', { duration: 60 }, 204), 2000);
    near(await endAfter('/refreshes', { duration: 3600 }, 204), 3600);
    near(await endAfter('/connect', { timeout: 60 }, 200), 3600);
    near(await endAfter('/connect', { timeout: 5000 }, 200), 5000);
    near(await endAfter('/v2/connect', undefined, 200), 5000);
    near(await endAfter('/timeout', { timeout: 20 }, 204), 20);
    near(await endAfter('/v2/connect', {}, 200), 300);
    near(await endAfter('/timeout', { timeout: 2 }, 204), 2);
    near(await endAfter('/refreshes', undefined, 204), 15);
  });

  test("no operation moves the end beyond the team's longest life", async () => {
    await using platform = await Platform.start({ database, limits: { lifetimeHours: 1 } });
    const { sandboxID } = await platform.createSandbox({ timeout: 3600 });
    // As if it had started half an hour ago.
    await platform.store.db
      .updateTable('sandboxes')
      .set(update => ({
        started_at_us: update('started_at_us', '-', 1_800_000_000),
        end_at_us: update('end_at_us', '-', 1_800_000_000),
      }))
      .execute();
    const { startMs } = await times(platform, sandboxID);
    for (const [suffix, body] of [
      ['/timeout', { timeout: 3600 }],
      ['/refreshes', { duration: 3600 }],
      ['/connect', { timeout: 3600 }],
    ] as const) {
      expect((await platform.call('POST', `/sandboxes/${sandboxID}${suffix}`, body)).status).toBeLessThan(300);
      expect((await times(platform, sandboxID)).endMs).toBe(startMs + 3_600_000);
    }
    expect((await platform.call('POST', '/v2/sandboxes', { templateID: 'base', timeout: 3601 })).status).toBe(400);
    expect((await platform.call('POST', `/sandboxes/${sandboxID}/connect`, { timeout: 3601 })).status).toBe(400);
  });

  test('a timeout of 0 ends the sandbox', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID } = await platform.createSandbox();
    expect((await platform.call('POST', `/sandboxes/${sandboxID}/timeout`, { timeout: 0 })).status).toBe(204);
    await until(async () => (await platform.call('GET', `/sandboxes/${sandboxID}`)).status === 404);
    await until(() => platform.node.executions().length === 0);
  });

  test('what expired while the platform was down ends at its start; what did not, runs on', async () => {
    await using platform = await Platform.start({ database });
    const short = await platform.createSandbox({ timeout: 3000 });
    const long = await platform.createSandbox({ timeout: 3000 });
    await platform.store.db
      .updateTable('sandboxes')
      .set({ end_at_us: Date.now() * 1000 })
      .where('sandbox_id', '=', short.sandboxID)
      .execute();
    await platform.restart();
    await until(() => platform.node.executions().length === 1);
    expect((await platform.call('GET', `/sandboxes/${short.sandboxID}`)).status).toBe(404);
    expect((await platform.call('GET', `/sandboxes/${long.sandboxID}`)).body).toMatchObject({
      envdAccessToken: long['envdAccessToken'],
    });
    expect(platform.api.directory.find(long.sandboxID)?.state).toBe('running');
  });

  test('a sandbox that could not be removed when it expired is cut off at once and removed later', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID } = await platform.createSandbox();
    let refusals = 1;
    platform.node.before = async call => {
      if (call === 'kill' && refusals-- > 0) throw new Error('busy');
    };
    await platform.call('POST', `/sandboxes/${sandboxID}/timeout`, { timeout: 0 });
    await until(() => platform.api.directory.size === 0);
    expect((await platform.call('GET', `/sandboxes/${sandboxID}`)).status).toBe(404);
    await until(() => platform.node.executions().length === 0, 15_000);
    await until(async () => (await platform.store.db.selectFrom('sandboxes').selectAll().execute()).length === 0);
  });

  test('one team’s removals and pauses that last keep nobody else’s sandboxes beyond their time', async () => {
    await using platform = await Platform.start({ database });
    const { db } = platform.store;
    const mine = await Promise.all(Array.from({ length: 24 }, () => platform.createSandbox()));
    const others = await Promise.all(Array.from({ length: 2 }, () => platform.createSandbox()));
    const { team } = await platform.otherTeam();
    const theirs = others.map(({ sandboxID }) => sandboxID);
    for (const id of theirs)
      await sql`update sandboxes set team_id = ${team.teamId} where sandbox_id = ${id}`.execute(db);
    const lasting = Promise.withResolvers<void>();
    const ids = new Set(mine.map(({ sandboxID }) => sandboxID));
    let held = 0;
    platform.node.before = async (call, target) => {
      if ((call !== 'kill' && call !== 'pause') || !ids.has(target?.sandboxId ?? '')) return;
      held++;
      await lasting.promise;
    };
    const end = (of: string[]) =>
      db.updateTable('sandboxes').set({ end_at_us: 1 }).where('sandbox_id', 'in', of).execute();
    const paused = [...mine.slice(0, 12).map(({ sandboxID }) => sandboxID), theirs[0] ?? ''];
    await db.updateTable('sandboxes').set({ auto_pause: 1 }).where('sandbox_id', 'in', paused).execute();
    try {
      await end([...ids]);
      // As many as are removed and paused at the same time.
      await until(() => held === 8 + 4);
      await end(theirs);
      await until(() => platform.node.paused().some(({ sandboxId }) => sandboxId === theirs[0]));
      await until(() => !platform.node.executions().some(({ sandboxId }) => sandboxId === theirs[1]));
    } finally {
      lasting.resolve();
    }
  });

  test('one question says what is to be done with those whose time is over, and one round does all of it', async () => {
    await using platform = await Platform.start({ database });
    const [killed, paused, left] = await Promise.all([1, 2, 3].map(() => platform.createSandbox()));
    await platform.api.stop();
    const { db } = platform.store;
    const { parts } = platform.api;
    const set = (sandboxId: string | undefined, change: { auto_pause?: 0 | 1; end_at_us: number }) =>
      db
        .updateTable('sandboxes')
        .set(change)
        .where('sandbox_id', '=', sandboxId ?? '')
        .execute();
    expect(await endsDue(db, parts.clock())).toEqual(new Set());
    await set(paused?.sandboxID, { auto_pause: 1, end_at_us: 1 });
    expect(await endsDue(db, parts.clock())).toEqual(new Set(['pause']));
    await set(killed?.sandboxID, { end_at_us: 2 });
    expect(await endsDue(db, 1)).toEqual(new Set(['pause']));
    expect(await endsDue(db, parts.clock())).toEqual(new Set(['kill', 'pause']));
    const nodes = singleNode('node-1', platform.node as NodeProtocol);
    const { round, settled } = ends({ ...parts, nodes });
    await round();
    await settled();
    const rows = await db.selectFrom('sandboxes').select(['sandbox_id', 'state']).execute();
    const states = Object.fromEntries(rows.map(row => [row.sandbox_id, row.state]));
    expect(states).toEqual({ [paused?.sandboxID ?? '']: 'paused', [left?.sandboxID ?? '']: 'running' });
    expect(await endsDue(db, parts.clock())).toEqual(new Set());
  });

  test('an automatic pause whose memory can not be kept outlives its machine all the same, where it was to', async () => {
    await using platform = await Platform.start({ database });
    const [first, second] = [await platform.createSandbox(), await platform.createSandbox()];
    await platform.api.stop();
    const { db } = platform.store;
    await db.updateTable('sandboxes').set({ auto_pause: 1, end_at_us: 1 }).execute();
    // Without a store, no create gets this, and nothing changes it.
    await sql`update sandboxes set auto_pause_durability = 'cluster'`.execute(db);
    platform.node.memory = { kept: false, reason: 'no CRIU' };
    const durablePauses = {
      isUsable: true,
      async store({ sandboxId }: { sandboxId: string }) {
        if (sandboxId === second.sandboxID) throw new Error('the store is away');
      },
    } as unknown as DurablePauses;
    const nodes = singleNode('node-1', platform.node as NodeProtocol);
    const pauses = autoPauses({ ...platform.api.parts, nodes, durablePauses });
    await pauses.round();
    await pauses.settled();
    const rows = await db.selectFrom('sandboxes').select(['sandbox_id', 'state', 'kept', 'durability']).execute();
    const paused = { state: 'paused', kept: 'filesystem' };
    expect(rows.toSorted((one, other) => (one.durability ?? '').localeCompare(other.durability ?? ''))).toMatchObject([
      { sandbox_id: first.sandboxID, durability: 'cluster', ...paused },
      { sandbox_id: second.sandboxID, durability: 'node', ...paused },
    ]);
    expect(platform.logged.join('')).not.toContain('could not be paused and runs on');
  });
});
