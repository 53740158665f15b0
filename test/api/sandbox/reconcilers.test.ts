import { expect, test } from 'bun:test';
import { newUuid } from '../../../src/base/id.ts';
import { singleNode } from '../../../src/api/placement/nodes.ts';
import { beginBlob } from '../../../src/api/blob/store/blobs.ts';
import { reconcileNodes } from '../../../src/api/sandbox/reconcilers/adoption.ts';
import { reconcileLeftovers } from '../../../src/api/sandbox/reconcilers/leftovers.ts';
import { recordPastSandbox } from '../../../src/api/sandbox/store/past.ts';
import { findSandboxOfAnyTeam, sandboxesAtOnce } from '../../../src/api/sandbox/store/read.ts';
import type { NodeProtocol } from '../../../src/protocol/node.ts';
import { onEachDatabase } from '../databases.ts';
import { adminToken, call, Platform, until } from '../platform.ts';
import { followClosed } from '../follow-closed.ts';

onEachDatabase(database => {
  test('a restart adopts what runs, forgets what is gone, sets aside what nobody knows', async () => {
    await using platform = await Platform.start({ database });
    const kept = await platform.createSandbox({ metadata: { a: 'b' } });
    const lost = await platform.createSandbox();
    const before = (await platform.call('GET', `/sandboxes/${kept.sandboxID}`)).body;
    const lostExecution = platform.node.executions().find(({ sandboxId }) => sandboxId === lost.sandboxID);
    if (!lostExecution) throw new Error('the sandbox is not on its node');
    await platform.api.stop();

    await platform.node.kill(lostExecution);
    const stray = { ...lostExecution, sandboxId: 'istray', executionId: newUuid() };
    await platform.node.create({ ...platform.node.created[0]!, ...stray });
    // A known sandbox's ID in another incarnation is a stray too.
    await platform.node.create({ ...platform.node.created[0]!, sandboxId: kept.sandboxID, executionId: newUuid() });
    expect(platform.node.executions()).toHaveLength(3);

    await platform.restart();
    expect(platform.node.executions().map(({ sandboxId }) => sandboxId)).toEqual([kept.sandboxID]);
    expect([...platform.node.setAsideIds.keys()].toSorted()).toEqual(['istray', kept.sandboxID].toSorted());
    expect(platform.node.paused()).toHaveLength(2);
    expect((await platform.call('GET', `/sandboxes/${kept.sandboxID}`)).body).toEqual(before);
    expect(platform.api.directory.find(kept.sandboxID)).toMatchObject({ state: 'running' });
    expect((await platform.call('GET', `/sandboxes/${lost.sandboxID}`)).status).toBe(404);
    expect((await platform.call('GET', '/v2/sandboxes')).headers.get('x-total-running')).toBe('1');
  });

  test('what was set aside takes the place of no sandbox that runs or is kept elsewhere', async () => {
    await using platform = await Platform.start({ database });
    // The platform itself must not repair what the test does to rows and the node.
    await platform.firstRoundOf('adoption');
    const { sandboxID } = await platform.createSandbox({ timeout: 3600 });
    const adopt = () =>
      call(
        platform.socketPath,
        'POST',
        `/admin/orphans/sandboxes/${sandboxID}/adopt`,
        { teamID: platform.team.teamId },
        { 'x-admin-token': adminToken },
      );
    const [execution] = platform.node.executions();
    if (!execution) throw new Error('the sandbox is not on its node');
    // The state after an interrupted move, on the sandbox's former machine.
    const left = { sandboxId: sandboxID, executionId: newUuid() };
    await platform.node.create({ ...platform.node.created[0]!, ...left });
    await platform.node.setAside(left, 'the database did not know it');
    expect(await adopt()).toMatchObject({ status: 409, body: { message: expect.stringContaining('runs') } });
    expect([...platform.node.setAsideIds.keys()]).toEqual([sandboxID]);
    expect(await findSandboxOfAnyTeam(platform.store.db, sandboxID)).toMatchObject({
      executionId: execution.executionId,
      state: 'running',
    });
    // Nor that of a paused sandbox, on its machine or in the store.
    const { db } = platform.store;
    await platform.node.pause(execution, { memory: true });
    await db.updateTable('sandboxes').set({ state: 'paused', kept: 'memory', durability: 'node' }).execute();
    const { listPaused } = platform.node;
    // As another machine lists it: each has a sandbox only once.
    platform.node.listPaused = async () =>
      platform.node.paused().filter(({ executionId }) => executionId === execution.executionId);
    expect(await adopt()).toMatchObject({ status: 409 });
    platform.node.listPaused = async () => [];
    await db.updateTable('sandboxes').set({ durability: 'cluster' }).execute();
    expect(await adopt()).toMatchObject({ status: 409 });
    platform.node.listPaused = listPaused;
    await db.updateTable('sandboxes').set({ state: 'running', kept: null, durability: null }).execute();
    // Nor while somebody works on it.
    const { takeBack } = platform.node;
    platform.node.takeBack = async target => {
      await platform.store.db.updateTable('sandboxes').set({ replica_id: 'another' }).execute();
      return takeBack.call(platform.node, target);
    };
    await platform.node.kill(execution);
    expect(await adopt()).toMatchObject({ status: 409 });
    expect([...platform.node.setAsideIds.keys()]).toEqual([sandboxID]);
    platform.node.takeBack = takeBack;
    expect(await adopt()).toMatchObject({ status: 204 });
    expect(await findSandboxOfAnyTeam(platform.store.db, sandboxID)).toMatchObject({ ...left, state: 'paused' });
  });

  test('what was set aside and has a row is taken back', async () => {
    await using platform = await Platform.start({ database });
    const [{ sandboxID }, other] = [await platform.createSandbox(), await platform.createSandbox()];
    for (const id of [sandboxID, other.sandboxID])
      expect((await platform.call('POST', `/sandboxes/${id}/pause`, {})).status).toBe(204);
    for (const paused of platform.node.paused()) await platform.node.setAside(paused, 'another database was there');
    // As what it is by now, not as what it was.
    await platform.store.db
      .updateTable('sandboxes')
      .set({ execution_id: newUuid() })
      .where('sandbox_id', '=', other.sandboxID)
      .execute();
    await reconcileNodes(platform.api.parts);
    expect([...platform.node.setAsideIds.keys()]).toEqual([other.sandboxID]);
  });

  test('what is paused and gone from its machine is forgotten, unless it is in the store', async () => {
    await using platform = await Platform.start({ database });
    const { db } = platform.store;
    const created = [];
    for (const durability of ['cluster', 'node', null] as const) {
      const { sandboxID } = await platform.createSandbox();
      created.push(sandboxID);
      if (durability === null) continue;
      expect((await platform.call('POST', `/sandboxes/${sandboxID}/pause`, {})).status).toBe(204);
      await db.updateTable('sandboxes').set({ durability }).where('sandbox_id', '=', sandboxID).execute();
    }
    const there = () => db.selectFrom('sandboxes').select(['sandbox_id', 'state']).execute();
    await reconcileNodes(platform.api.parts);
    expect(await there()).toHaveLength(3);
    using followed = followClosed(platform.api.directory);
    for (const execution of [...platform.node.executions(), ...platform.node.paused()])
      await platform.node.kill(execution);
    await reconcileNodes(platform.api.parts);
    const [stored, ...lost] = created;
    expect(await there()).toEqual([{ sandbox_id: stored ?? '', state: 'paused' }]);
    expect(followed.closed.map(({ sandboxId }) => sandboxId).toSorted()).toEqual(lost.toSorted());
    const said = platform.logged.filter(line => line.includes('gone from its node')).map(line => JSON.parse(line));
    expect(said.map(({ sandboxId, state }) => `${sandboxId} ${state}`).toSorted()).toEqual(
      [`${lost[0]} paused`, `${lost[1]} running`].toSorted(),
    );
  });

  test('after another server took over, what may be elsewhere is kept, and machines are asked once for all of it', async () => {
    await using platform = await Platform.start({ database });
    const ids: string[] = [];
    for (let left = 3; left > 0; left--) ids.push((await platform.createSandbox()).sandboxID);
    await platform.api.stop();
    const { db } = platform.store;
    const { parts } = platform.api;
    const history = { system_id: 's', timeline: 2, changed_at_us: parts.clock() };
    await db.deleteFrom('database_timeline').execute();
    await db
      .insertInto('database_timeline')
      .values({ place: 1, ...history })
      .execute();
    const there = async () =>
      (await db.selectFrom('sandboxes').select('sandbox_id').execute()).map(row => row.sandbox_id).toSorted();
    // All have left their machine, and the first has continued elsewhere as an unknown execution.
    for (const execution of platform.node.executions()) await platform.node.kill(execution);
    let asked = 0;
    const nodesWith = (list: () => Promise<object[]>) => {
      const present = singleNode('node-1', platform.node as NodeProtocol);
      const none = async () => [];
      const other = { list, listPaused: none, listSetAside: none, setAside: none } as unknown as NodeProtocol;
      return { ...present, list: () => [...present.list(), { nodeId: 'node-2', protocol: other }] };
    };
    const silent = nodesWith(() => Promise.reject(new Error('no answer')));
    await expect(reconcileNodes({ ...parts, nodes: silent })).rejects.toThrow('no answer');
    expect(await there()).toEqual(ids.toSorted());
    const away = [{ nodeId: 'node-3', isConnecting: false, sinceUs: 0, info: null }];
    await reconcileNodes({ ...parts, nodes: { ...nodesWith(async () => []), away: () => away } });
    expect(await there()).toEqual(ids.toSorted());
    const nodes = nodesWith(async () => (asked++, [{ sandboxId: ids[0] ?? '', executionId: newUuid() }]));
    await reconcileNodes({ ...parts, nodes });
    expect(await there()).toEqual(ids.slice(0, 1));
    // Once for itself, and once for all rows of the other machine.
    expect(asked).toBe(2);
  });

  test('what has stayed of a sandbox that went on elsewhere by the store is removed, and nothing else', async () => {
    await using platform = await Platform.start({ database });
    const { db } = platform.store;
    const ids = new Map<string, string>();
    for (const name of ['by the store', 'otherwise', 'here', 'ended elsewhere']) {
      const { sandboxID } = await platform.createSandbox();
      ids.set(sandboxID, name);
      expect((await platform.call('POST', `/sandboxes/${sandboxID}/pause`, {})).status).toBe(204);
    }
    for (const { sandboxId, executionId } of platform.node.paused()) {
      const name = ids.get(sandboxId) ?? '';
      const stored = {
        name: executionId,
        kind: 'pause',
        blobId: newUuid(),
        bytes: 1,
        sealedKey: '',
        facts: null,
      } as const;
      if (name !== 'otherwise') await beginBlob(db, stored, { replicaId: 'another', nowUs: 1 });
      const row = db.updateTable('sandboxes').where('sandbox_id', '=', sandboxId);
      await row.set({ execution_id: newUuid(), ...(name !== 'here' && { node_id: 'node-2' }) }).execute();
      if (name === 'ended elsewhere') await db.deleteFrom('sandboxes').where('sandbox_id', '=', sandboxId).execute();
      const past = { sandbox_id: sandboxId, team_id: platform.team.teamId, node_id: 'node-2', ended_at_us: 1 };
      if (name === 'ended elsewhere') await recordPastSandbox(db, past);
    }
    await reconcileNodes(platform.api.parts);
    const named = (sandboxIds: Iterable<string>) => [...sandboxIds].map(id => ids.get(id) ?? '').toSorted();
    expect(named(platform.node.paused().map(({ sandboxId }) => sandboxId))).toEqual(['here', 'otherwise']);
    expect(named(platform.node.setAsideIds.keys())).toEqual(['here', 'otherwise']);
  });

  test('what changes while machines are asked is neither lost nor unknown', async () => {
    await using platform = await Platform.start({ database });
    const { db } = platform.store;
    const [killed, resuming, unreachable] = [
      await platform.createSandbox(),
      await platform.createSandbox(),
      await platform.createSandbox(),
    ].map(({ sandboxID }) => sandboxID);
    const executionOf = (id: string | undefined) =>
      platform.node.executions().find(({ sandboxId }) => sandboxId === id)!;
    // A resume is in progress.
    const next = executionOf(resuming).executionId;
    const row = db.updateTable('sandboxes').where('sandbox_id', '=', resuming ?? '');
    await row.set({ state: 'resuming', execution_id: newUuid(), next_execution_id: next }).execute();
    // One is on its machine and out of its reach.
    await platform.node.kill(executionOf(unreachable));
    platform.node.listSetAside = async () => [
      { sandboxId: unreachable ?? '', known: null, sinceMs: 1, reason: 'it hangs' },
    ];
    platform.node.before = async call => {
      platform.node.before = async () => {};
      if (call === 'list') await platform.call('DELETE', `/sandboxes/${killed}`);
    };
    await reconcileNodes(platform.api.parts);
    expect(
      (await db.selectFrom('sandboxes').select('sandbox_id').execute()).map(found => found.sandbox_id).toSorted(),
    ).toEqual([resuming ?? '', unreachable ?? ''].toSorted());
    expect(platform.node.executions().map(({ sandboxId }) => sandboxId)).toEqual([resuming ?? '']);
    expect([platform.node.setAsideIds.size, platform.logged]).toEqual([0, []]);
  });

  test('a restart adopts more sandboxes than are read at a time', async () => {
    await using platform = await Platform.start({ database, checkAnswers: false });
    const ids: string[] = [];
    for (let left = sandboxesAtOnce + 1; left > 0; left--) ids.push((await platform.createSandbox()).sandboxID);
    await platform.restart();
    expect(platform.api.directory.ids().toSorted()).toEqual(ids.toSorted());
  });

  test('a restart takes back what was starting and finishes what was being killed', async () => {
    await using platform = await Platform.start({ database });
    const ids = [await platform.createSandbox(), await platform.createSandbox(), await platform.createSandbox()].map(
      ({ sandboxID }) => sandboxID,
    );
    await platform.api.stop();
    const states = ['starting', 'killing', 'running'] as const;
    for (const [index, state] of states.entries()) {
      await platform.store.db
        .updateTable('sandboxes')
        .set({ state })
        .where('sandbox_id', '=', ids[index] ?? '')
        .execute();
    }
    await platform.restart();
    expect(platform.node.executions().map(({ sandboxId }) => sandboxId)).toEqual([ids[2] ?? '']);
    expect(await platform.store.db.selectFrom('sandboxes').select('sandbox_id').execute()).toEqual([
      { sandbox_id: ids[2] ?? '' },
    ]);
  });

  test('what was left on a machine that is away is left alone until that is back', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID } = await platform.createSandbox();
    await platform.api.stop();
    const { db } = platform.store;
    const { parts } = platform.api;
    await db.updateTable('sandboxes').set({ state: 'killing', replica_id: null }).execute();
    const present = singleNode('node-1', platform.node as NodeProtocol);
    const away = ['node-1', 'node-2'].map(nodeId => ({ nodeId, isConnecting: false, sinceUs: 0, info: null }));
    const left = { ...parts, nodes: { ...present, list: () => [], away: () => away } };
    await reconcileLeftovers(left);
    expect(await findSandboxOfAnyTeam(db, sandboxID)).toMatchObject({ state: 'killing', replicaId: null });
    // Nor is one that is moved between two machines that are both away, or that was to continue where it was.
    for (const nextNodeId of ['node-1', 'node-2']) {
      const moving = { state: 'moving', next_node_id: nextNodeId, next_execution_id: newUuid() } as const;
      await db.updateTable('sandboxes').set(moving).execute();
      await reconcileLeftovers(left);
      expect(await findSandboxOfAnyTeam(db, sandboxID)).toMatchObject({ state: 'moving', replicaId: null });
    }
    await db.updateTable('sandboxes').set({ state: 'killing', next_node_id: null, next_execution_id: null }).execute();
    expect(platform.node.executions()).toHaveLength(1);
    await reconcileLeftovers({ ...parts, nodes: present });
    expect(await findSandboxOfAnyTeam(db, sandboxID)).toBeNull();
    expect(platform.node.executions()).toEqual([]);
  });

  test('until the node was heard, every request is refused and changes nothing', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID } = await platform.createSandbox();
    await platform.api.stop();
    platform.node.before = async call => {
      if (call === 'list') throw new Error('not connected');
    };
    await platform.restart();
    expect(platform.api.isReady()).toBe(false);
    for (const [method, path] of [
      ['GET', '/health'],
      ['GET', '/sandboxes'],
      ['POST', '/v2/sandboxes'],
      ['DELETE', `/sandboxes/${sandboxID}`],
    ] as const) {
      expect(await platform.call(method, path)).toMatchObject({ status: 503, body: { code: 503 } });
    }
    const logged = platform.logged.find(line => line.includes('request failed'));
    expect(JSON.parse(logged ?? '{}')).toMatchObject({ status: 503, error: expect.stringContaining('starting') });
    expect(logged).not.toContain('undefined');
    platform.node.before = async () => {};
    await until(() => platform.api.isReady());
    expect((await platform.call('GET', `/sandboxes/${sandboxID}`)).status).toBe(200);
  });

  test('a sandbox that ends by itself is gone at once and cut off', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID } = await platform.createSandbox();
    using followed = followClosed(platform.api.directory);
    const closed = () => followed.closed.map(({ sandboxId }) => sandboxId);
    const [execution] = platform.node.executions();
    platform.node.exit({ ...execution!, executionId: newUuid() });
    expect((await platform.call('GET', `/sandboxes/${sandboxID}`)).status).toBe(200);
    expect(closed()).toEqual([]);
    platform.node.exit(execution!);
    await until(async () => (await platform.call('GET', `/sandboxes/${sandboxID}`)).status === 404);
    expect(closed()).toEqual([sandboxID]);
    expect(platform.api.directory.find(sandboxID)).toBeUndefined();
  });

  test('reconciling while sandboxes come and go harms none of them', async () => {
    await using platform = await Platform.start({ database });
    // Slow calls, so that reconciling meets every moment of a create and a kill.
    platform.node.before = async () => Bun.sleep(Math.random() * 5);
    platform.node.after = async () => Bun.sleep(Math.random() * 5);
    let working = true;
    let rounds = 0;
    const reconciling = (async () => {
      for (; working; rounds++) await reconcileNodes(platform.api.parts);
    })();
    const alive = new Set<string>();
    await Promise.all(
      Array.from({ length: 4 }, async () => {
        for (let i = 0; i < 15; i++) {
          const { sandboxID } = await platform.createSandbox();
          alive.add(sandboxID);
          if (i % 3 === 0) continue;
          expect((await platform.call('DELETE', `/sandboxes/${sandboxID}`)).status).toBe(204);
          alive.delete(sandboxID);
        }
      }),
    );
    working = false;
    await reconciling;
    expect(rounds).toBeGreaterThan(5);
    expect(
      platform.node
        .executions()
        .map(({ sandboxId }) => sandboxId)
        .toSorted(),
    ).toEqual([...alive].toSorted());
    expect(platform.api.directory.size).toBe(alive.size);
    const listed = (await platform.call('GET', '/v2/sandboxes')).body as Array<{ sandboxID: string }>;
    expect(listed.map(({ sandboxID }) => sandboxID).toSorted()).toEqual([...alive].toSorted());
  });
});
