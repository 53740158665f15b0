import { expect, test } from 'bun:test';
import { sql } from 'kysely';
import type { Db } from '../../../src/api/database/db.ts';
import type { SandboxRecord } from '../../../src/api/sandbox/record.ts';
import { listPage } from '../../../src/api/sandbox/rules/list.ts';
import { putPausedSandbox } from '../../../src/api/sandbox/store/adopt.ts';
import { shiftRuns } from '../../../src/api/sandbox/store/clock.ts';
import { runningCounts, stateCounts } from '../../../src/api/sandbox/store/counts.ts';
import { countOccupied, insertSandbox } from '../../../src/api/sandbox/store/create.ts';
import { recordDiskFailed } from '../../../src/api/sandbox/store/disk-failed.ts';
import { comingEnds } from '../../../src/api/sandbox/store/ends.ts';
import { findKey } from '../../../src/api/sandbox/store/idempotency.ts';
import { countSandboxes, listSandboxes, sandboxesInTransition } from '../../../src/api/sandbox/store/list/list.ts';
import type { SandboxCursor } from '../../../src/api/sandbox/store/list/list.ts';
import { searchSandboxes } from '../../../src/api/sandbox/store/list/search.ts';
import { setSandboxNetwork } from '../../../src/api/sandbox/store/network.ts';
import { placesOf } from '../../../src/api/sandbox/store/past.ts';
import { beginResume } from '../../../src/api/sandbox/store/resume.ts';
import {
  findExecution,
  findSandbox,
  sandboxesDue,
  sandboxesIn,
  sandboxesLeftIn,
  sandboxesOfTeam,
  sandboxesOn,
  sandboxesWithRules,
  takeOverSandbox,
} from '../../../src/api/sandbox/store/read.ts';
import { deleteSandbox, expireSandbox, publishSandbox, setSandboxEnd } from '../../../src/api/sandbox/store/state.ts';
import { enterReplica } from '../../../src/api/replica/store/replicas.ts';
import type { TeamRecord } from '../../../src/api/team/record.ts';
import { deleteVolume, insertVolume } from '../../../src/api/volume/store/volumes.ts';
import { onEachDatabase } from '../databases.ts';
import { atOnce, manySandboxes as many, sandboxRecord as record, startUs, storeScene } from './scene.ts';

// Results of statements about sandboxes, on both databases. Which state may follow which: `sandbox/states.test.ts`.

async function put(db: Db, sandbox: SandboxRecord): Promise<SandboxRecord> {
  expect(await insertSandbox(db, sandbox, many)).toBe('inserted');
  return sandbox;
}

async function eventsOf(db: Db, sandboxId: string): Promise<string[]> {
  const rows = await db.selectFrom('events').select('type').where('subject_id', '=', sandboxId).orderBy('sequence');
  return (await rows.execute()).map(({ type }) => type.replace('sandbox.lifecycle.', ''));
}

/** More than there is. */
const metadataBytes = 1024 ** 2;

onEachDatabase(database => {
  test('a create counts and writes in one: two at once do not both take the last place', async () => {
    await using scene = await storeScene(database);
    const { db, mine, theirs } = scene;
    const one = { concurrentSandboxes: 1, sandboxes: 9 };
    const answers = await atOnce(id => insertSandbox(db, record(mine.teamId, id, { state: 'starting' }), one));
    expect(answers.toSorted()).toEqual(['full', 'inserted']);
    expect(await insertSandbox(db, record(theirs.teamId, 'theirs'), one)).toBe('inserted');
    // Paused ones take no place, and count towards the other limit.
    const two = { concurrentSandboxes: 9, sandboxes: 2 };
    expect(await insertSandbox(db, record(mine.teamId, 'paused', { state: 'paused', kept: 'memory' }), two)).toBe(
      'inserted',
    );
    expect(await countOccupied(db, mine.teamId)).toBe(1);
    expect(await insertSandbox(db, record(mine.teamId, 'third'), two)).toBe('too_many');
    expect(await insertSandbox(db, record(mine.teamId, 'fourth'), many, undefined, async () => false)).toBe(
      'node_full',
    );
    expect(await findSandbox(db, mine.teamId, 'fourth')).toBeNull();
    expect(await stateCounts(db)).toEqual(new Map(Object.entries({ starting: 1, running: 1, paused: 1 })) as never);
    expect(await runningCounts(db)).toEqual(new Map([[theirs.teamId, 1]]));
    const next = { nextExecutionId: 'next', replicaId: 'r', nodeId: 'node-2', nowUs: startUs + 7 };
    expect(await beginResume(db, record(mine.teamId, 'paused'), next, 1)).toBe('full');
    expect(await beginResume(db, record(mine.teamId, 'paused'), next, 2, async () => false)).toBe('node_full');
    expect(await beginResume(db, record(mine.teamId, 'paused'), next, 2)).toMatchObject({ state: 'resuming' });
    // By the clock that all processes share.
    const homes = await db.selectFrom('sandbox_homes').select(['node_id', 'left_at_us']).execute();
    expect(homes).toEqual([{ node_id: 'node-1', left_at_us: startUs + 7 }]);
  });

  test('a sandbox may have more labels than one statement writes', async () => {
    await using scene = await storeScene(database);
    const { db, mine } = scene;
    const metadata = Object.fromEntries(Array.from({ length: 40_000 }, (_, i) => [`k${i}`, '']));
    await put(db, record(mine.teamId, 'a', { metadata }));
    const { count } = await db
      .selectFrom('sandbox_labels')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow();
    expect(Number(count)).toBe(40_000);
  });

  test('a team is told which of its sandboxes are between two states, so many at most', async () => {
    await using scene = await storeScene(database);
    const { db, mine, theirs } = scene;
    await put(db, record(mine.teamId, 'c', { state: 'pausing' }));
    await put(db, record(mine.teamId, 'a', { state: 'moving' }));
    await put(db, record(theirs.teamId, 'b', { state: 'resuming' }));
    // Neither is one of those that clients see on the way.
    await put(db, record(mine.teamId, 'd'));
    await put(db, record(mine.teamId, 'e', { state: 'starting' }));
    const inTransition = [
      { sandboxId: 'a', transition: 'moving' as const },
      { sandboxId: 'c', transition: 'pausing' as const },
    ];
    expect(await sandboxesInTransition(db, mine.teamId, 9)).toEqual(inTransition);
    expect(await sandboxesInTransition(db, mine.teamId, 1)).toEqual(inTransition.slice(0, 1));
  });

  test('a sandbox holds its volumes: none is deleted under it, and none that is gone is mounted', async () => {
    await using scene = await storeScene(database);
    const { db, mine } = scene;
    const volume = {
      volumeId: 'v',
      teamId: mine.teamId,
      nodeId: 'node-1',
      name: 'v',
      sizeMiB: 1,
      createdAtUs: startUs,
    };
    const volumeMounts = ['/mnt/v', '/mnt/w'].map(path => ({ name: 'v', path, volumeId: 'v' }));
    const last = { shownMax: 10, nowUs: startUs };
    expect(await insertSandbox(db, record(mine.teamId, 'early', { volumeMounts }), many)).toBe('volume_gone');
    await insertVolume(db, volume, 9);
    const sandbox = await put(db, record(mine.teamId, 'a', { volumeMounts }));
    expect(await deleteVolume(db, volume, last)).toEqual({ deleted: false, sandboxIds: ['a'], more: 0 });
    for (const id of ['b', 'c']) {
      const other = await put(db, record(mine.teamId, id, { volumeMounts }));
      expect(await deleteVolume(db, volume, { ...last, shownMax: 1 })).toEqual({
        ...{ deleted: false, sandboxIds: ['a'], more: 1 },
      });
      await deleteSandbox(db, other, ['running'], { reason: 'request', atUs: startUs });
    }
    await deleteSandbox(db, sandbox, ['running'], { reason: 'request', atUs: startUs });
    expect(await deleteVolume(db, volume, last)).toMatchObject({ deleted: true });
  });

  test('a key stands for one create: taken while it is under way, answered from then on, free after an undo', async () => {
    await using scene = await storeScene(database);
    const { db, mine, theirs } = scene;
    const key = { key: 'k', requestDigest: 'd' };
    const first = record(mine.teamId, 'a', { state: 'starting' });
    expect(await insertSandbox(db, first, many, key)).toBe('inserted');
    expect(await insertSandbox(db, record(mine.teamId, 'b'), many, key)).toBe('key_taken');
    expect(await insertSandbox(db, record(theirs.teamId, 'c'), many, key)).toBe('inserted');
    expect(await findKey(db, mine.teamId, 'k')).toEqual({ requestDigest: 'd', outcome: 'under_way' });
    await deleteSandbox(db, first, ['starting'], { reason: 'failed', atUs: startUs });
    expect(await findKey(db, mine.teamId, 'k')).toBeNull();
    const second = record(mine.teamId, 'd', { state: 'starting' });
    expect(await insertSandbox(db, second, many, key)).toBe('inserted');
    const times = { startedAtUs: startUs + 5, endAtUs: startUs + 9 };
    expect(await publishSandbox(db, second, times, { key: 'k' })).toMatchObject({ state: 'running', ...times });
    await deleteSandbox(db, second, ['running'], { reason: 'request', atUs: startUs });
    expect(await findKey(db, mine.teamId, 'k')).toMatchObject({ outcome: { answer: { sandboxId: 'd' } } });
  });

  test('lists have what was asked for: metadata whole, text anywhere, states as clients see them', async () => {
    await using scene = await storeScene(database);
    const { db, mine, theirs } = scene;
    const at = (number: number) => ({ startedAtUs: startUs + number });
    await put(db, record(mine.teamId, 'a', { ...at(1), metadata: { app: 'Web_1', user: 'x' } }));
    await put(db, record(mine.teamId, 'b', { ...at(2), metadata: { app: 'web21' }, state: 'snapshotting' }));
    await put(db, record(mine.teamId, 'c', { ...at(3), state: 'pausing' }));
    await put(db, record(mine.teamId, 'd', { ...at(4), state: 'killing' }));
    await put(db, record(theirs.teamId, 'e', { ...at(5), metadata: { app: 'Web_1' } }));
    const all = { teamId: mine.teamId, shown: ['running', 'paused'], metadata: [] } as const;
    const ids = async (filter: Partial<Parameters<typeof listSandboxes>[1]>, order: 'asc' | 'desc' = 'asc') =>
      (await listSandboxes(db, { ...all, ...filter }, { order, limit: 9, metadataBytes })).sandboxes.map(
        ({ sandboxId }) => sandboxId,
      );
    expect(await ids({})).toEqual(['a', 'b', 'c']);
    expect(await ids({}, 'desc')).toEqual(['c', 'b', 'a']);
    expect(await ids({ shown: ['running'] })).toEqual(['a', 'b']);
    expect(await ids({ metadata: [['app', 'Web_1']] })).toEqual(['a']);
    expect(
      await ids({
        metadata: [
          ['app', 'Web_1'],
          ['user', 'y'],
        ],
      }),
    ).toEqual([]);
    // A pattern character stands for itself.
    expect(await ids({ text: 'web_' })).toEqual(['a']);
    expect(await ids({ text: 'WEB' })).toEqual(['a', 'b']);
    expect(await ids({ startedAfterUs: startUs + 2 })).toEqual(['b', 'c']);
    expect(await ids({ templateId: 'another' })).toEqual([]);
    expect(await countSandboxes(db, { ...all, text: 'web' })).toBe(2);
    const behind = { startedAtUs: startUs + 2, sandboxId: 'b' };
    const page = await listSandboxes(db, all, { order: 'desc', after: behind, limit: 1, metadataBytes });
    expect(page).toMatchObject({ sandboxes: [{ sandboxId: 'a' }], isMore: false });
  });

  test('a page has so much metadata, and at least one sandbox; what is long is not searched', async () => {
    await using scene = await storeScene(database);
    const { db, mine } = scene;
    for (const [number, bytes] of [10, 4_100, 10, 10].entries())
      await put(
        db,
        record(mine.teamId, `${number}`, { startedAtUs: startUs + number, metadata: { a: 'x'.repeat(bytes) } }),
      );
    const all = { teamId: mine.teamId, shown: ['running'], metadata: [] } as const;
    for (const [order, start] of [
      ['asc', [0, 1]],
      ['desc', [3, 2, 1]],
    ] as const)
      for (const limit of [1, 2, 3, 4]) {
        const page = await listSandboxes(db, all, { order, limit, metadataBytes: 1_000 });
        const expected = start.slice(0, limit).map(number => ({ sandboxId: `${number}` }));
        expect(page).toMatchObject({ sandboxes: expected, isMore: true });
        expect(page.sandboxes).toHaveLength(expected.length);
      }
    const whole = await listSandboxes(db, all, { order: 'asc', limit: 4, metadataBytes });
    expect([whole.sandboxes.length, whole.isMore]).toEqual([4, false]);
    expect(
      await listSandboxes(db, { ...all, templateId: 'another' }, { order: 'asc', limit: 4, metadataBytes }),
    ).toEqual({ sandboxes: [], isMore: false });
    expect(await countSandboxes(db, { ...all, text: 'xx' })).toBe(3);
    expect(await countSandboxes(db, { ...all, text: '1' })).toBe(1);
  });

  test('a search in pieces finds what one in a whole does, wherever pieces and pages end', async () => {
    await using scene = await storeScene(database);
    const { db, mine } = scene;
    const states = ['running', 'paused', 'killing', 'pausing', 'snapshotting'] as const;
    for (let number = 0; number < 23; number++) {
      // Some begin together: their IDs decide the order.
      const what = {
        startedAtUs: startUs + Math.floor(number / 2),
        state: states[number % states.length] ?? 'running',
      };
      const metadata = { a: number % 3 ? 'found' : 'no', b: 'x'.repeat(number) };
      await put(db, record(mine.teamId, `i${String(number).padStart(2, '0')}`, { ...what, metadata }));
    }
    const text = { teamId: mine.teamId, shown: ['running', 'paused'], metadata: [], text: 'found' } as const;
    const running = await countSandboxes(db, { ...text, shown: ['running'] });
    for (const order of ['asc', 'desc'] as const)
      for (const rowsAtOnce of [1, 2, 3, 7, 23, 100])
        for (const [limit, bytes] of [
          [1, metadataBytes],
          [4, metadataBytes],
          [100, 70],
          [100, metadataBytes],
        ] as const)
          for (let after: SandboxCursor | undefined, isMore = true; isMore;) {
            const page = { order, limit, metadataBytes: bytes, ...(after && { after }) };
            const expected = await listSandboxes(db, text, page);
            for (const countsRunning of [true, false]) {
              const found = await searchSandboxes(db, text, page, { countsRunning, rowsAtOnce, othersHad() {} });
              expect(found.sandboxes).toEqual(expected.sandboxes);
              expect(found.next !== null).toBe(expected.isMore);
              if (countsRunning) expect(found.running).toBe(running);
              after = found.next ?? undefined;
            }
            ({ isMore } = expected);
          }
    const none = { order: 'asc', limit: 9, metadataBytes } as const;
    const options = { countsRunning: true, othersHad() {} };
    expect(await searchSandboxes(db, { ...text, text: 'nowhere' }, none, options)).toEqual({
      ...{ sandboxes: [], next: null, running: 0 },
    });
  });

  test('while many sandboxes are searched for a text others have their turn, again and again', async () => {
    await using scene = await storeScene(database);
    const { db, mine } = scene;
    const many = 2_100;
    const [first] = await put(db, record(mine.teamId, 'i0')).then(() =>
      db.selectFrom('sandboxes').selectAll().where('sandbox_id', '=', 'i0').execute(),
    );
    if (!first) throw new Error('the first sandbox is there');
    for (let from = 1; from < many; from += 100)
      await db
        .insertInto('sandboxes')
        .values(Array.from({ length: 100 }, (_, number) => ({ ...first, sandbox_id: `i${from + number}` })))
        .execute();
    let [turns, othersMs, isOver] = [0, 0, false];
    const turn = () => {
      turns++;
      if (!isOver) setImmediate(turn);
    };
    setImmediate(turn);
    const page = await listPage(db, { teamId: mine.teamId } as TeamRecord, { text: 'nowhere' }, ms => (othersMs += ms));
    isOver = true;
    expect(page).toEqual({ sandboxes: [], nextToken: null, totalRunning: 0 });
    expect(turns).toBeGreaterThanOrEqual(database.name === 'SQLite' ? 8 : 1);
    expect(othersMs).toBeGreaterThan(0);
  });

  test('where many are read, nothing is read of what their creators may make long', async () => {
    await using scene = await storeScene(database);
    const { db, mine } = scene;
    const { sandboxId, executionId, nodeId } = await put(db, record(mine.teamId, 'a', { metadata: { app: 'web' } }));
    // Reading these texts would fail.
    const rules = '{"rules":';
    await sql`update sandboxes set env_vars_json = '{', mcp_json = '{', iam_json = '{', network_json = ${rules}`.execute(
      db,
    );
    const all = { teamId: mine.teamId, shown: ['running'], metadata: [] } as const;
    const { sandboxes } = await listSandboxes(db, all, { order: 'asc', limit: 9, metadataBytes });
    const [listed] = sandboxes;
    expect(listed).toMatchObject({ sandboxId, metadata: { app: 'web' } });
    await sql`update sandboxes set metadata_json = '{'`.execute(db);
    const replica = { ownId: 'own', nowUs: startUs };
    for (const rows of [
      await sandboxesIn(db, ['running']),
      await sandboxesOn(db, nodeId, ['running']),
      await sandboxesLeftIn(db, ['running'], replica),
      await sandboxesOfTeam(db, mine.teamId),
      await sandboxesWithRules(db, ['running'], { teamId: mine.teamId }),
      await sandboxesWithRules(db, ['running'], 'tokens'),
      await sandboxesDue(db, 'kill', Number.MAX_SAFE_INTEGER, 9),
    ])
      expect(rows).toMatchObject([{ sandboxId, executionId, nodeId }]);
    // Hundreds end at a time; the event has the metadata.
    await sql`update sandboxes set metadata_json = '{}'`.execute(db);
    const expired = await expireSandbox(db, { sandboxId, executionId }, Number.MAX_SAFE_INTEGER, 'own');
    expect(expired).toMatchObject({ sandboxId, executionId, nodeId, state: 'killing' });
  });

  test('whose time is over comes first, and a timeout is extended unless that would shorten it', async () => {
    await using scene = await storeScene(database);
    const { db, mine } = scene;
    const ending = async (sandboxId: string, inUs: number, autoPause: boolean) =>
      put(db, record(mine.teamId, sandboxId, { endAtUs: startUs + inUs, autoPause }));
    const a = await ending('a', 20, false);
    await ending('b', 10, false);
    await ending('c', 15, true);
    const due = async (then: 'kill' | 'pause', nowUs: number, limit = 9) =>
      (await sandboxesDue(db, then, startUs + nowUs, limit)).map(({ sandboxId }) => sandboxId);
    expect(await due('kill', 20)).toEqual(['b', 'a']);
    expect(await due('kill', 20, 1)).toEqual(['b']);
    expect(await due('kill', 9)).toEqual([]);
    expect(await due('pause', 15)).toEqual(['c']);
    const ends = await comingEnds(db, { nowUs: startUs, untilUs: startUs + 15 });
    expect([...ends.keys()]).toEqual(['node-1']);
    expect(ends.get('node-1')).toMatchObject([
      { sandboxId: 'b', inMs: 0.01, then: 'kill' },
      { sandboxId: 'c', inMs: 0.015, then: 'pause' },
    ]);
    const end = { endAtUs: startUs + 12, onlyLater: true, nowUs: startUs };
    expect(await setSandboxEnd(db, a, end)).toMatchObject({ endAtUs: startUs + 20 });
    expect(await setSandboxEnd(db, a, { ...end, onlyLater: false })).toMatchObject({ endAtUs: startUs + 12 });
    // A change without effect is no event.
    await setSandboxEnd(db, a, { ...end, onlyLater: false });
    expect(await eventsOf(db, 'a')).toEqual(['updated']);
    await shiftRuns(db, 100);
    expect(await findSandbox(db, mine.teamId, 'a')).toMatchObject({
      startedAtUs: startUs + 100,
      endAtUs: startUs + 112,
    });
  });

  test('work on a sandbox is taken over once, from a process that is over', async () => {
    await using scene = await storeScene(database);
    const { db, mine } = scene;
    await enterReplica(db, { replicaId: 'alive', name: 'alive' }, startUs + 10);
    for (const replicaId of ['alive', 'dead', 'own', null])
      await put(db, record(mine.teamId, `of ${replicaId}`, { state: 'pausing', replicaId }));
    const left = async (nowUs: number) =>
      (await sandboxesLeftIn(db, ['pausing'], { ownId: 'own', nowUs })).map(({ sandboxId }) => sandboxId).toSorted();
    expect(await left(startUs)).toEqual(['of dead', 'of null', 'of own']);
    expect(await left(startUs + 10)).toEqual(['of alive', 'of dead', 'of null', 'of own']);
    const [listed] = await sandboxesLeftIn(db, ['pausing'], { ownId: 'none', nowUs: startUs });
    if (!listed) throw new Error('there is one');
    const taken = await atOnce(id => takeOverSandbox(db, listed, id));
    expect(taken.filter(one => one !== null)).toHaveLength(1);
  });

  test('network settings change while it runs, and where asked only if they are still the same', async () => {
    await using scene = await storeScene(database);
    const { db, mine } = scene;
    const sandbox = await put(db, record(mine.teamId, 'a'));
    const [none, open, shut] = [
      { allowInternetAccess: null, network: null },
      { allowInternetAccess: true, network: { allowOut: ['1.2.3.4'] } },
      { allowInternetAccess: false, network: null },
    ];
    expect(await setSandboxNetwork(db, sandbox, open, startUs, shut)).toBeNull();
    expect(await setSandboxNetwork(db, sandbox, open, startUs, none)).toMatchObject(open);
    expect(await setSandboxNetwork(db, sandbox, shut, startUs, open)).toMatchObject(shut);
    expect(await setSandboxNetwork(db, { ...sandbox, executionId: 'over' }, open, startUs)).toBeNull();
    expect(await eventsOf(db, 'a')).toEqual(['updated', 'updated']);
    const row = await db.selectFrom('events').select('body_json').executeTakeFirstOrThrow();
    // Rules may hold credentials.
    expect(row.body_json).not.toContain('1.2.3.4');
  });

  test('a disk that failed is an event of the execution that runs, and of no other', async () => {
    await using scene = await storeScene(database);
    const { db, mine } = scene;
    const sandbox = await put(db, record(mine.teamId, 'a'));
    expect(await recordDiskFailed(db, { ...sandbox, executionId: 'over' }, startUs)).toBe(false);
    expect(await recordDiskFailed(db, sandbox, startUs)).toBe(true);
    expect(await eventsOf(db, 'a')).toEqual(['disk_failed']);
    const paused = await put(db, record(mine.teamId, 'b', { state: 'paused', kept: 'memory' }));
    expect(await recordDiskFailed(db, paused, startUs)).toBe(false);
  });

  test('one that was set aside gets its row again, or becomes what another execution was', async () => {
    await using scene = await storeScene(database);
    const { db, mine, theirs } = scene;
    const paused = { ...record(mine.teamId, 'a', { state: 'paused' }), kept: 'memory' as const };
    expect(await putPausedSandbox(db, paused, null)).toEqual(paused);
    // Somebody else was faster.
    expect(await putPausedSandbox(db, { ...paused, executionId: 'other' }, null)).toBeNull();
    const resuming = { state: 'resuming', replicaId: 'r', nextExecutionId: 'n', durability: 'cluster' } as const;
    const was = await put(db, record(mine.teamId, 'b', resuming));
    const found = { ...paused, sandboxId: 'b', executionId: 'found', nodeId: 'node-2' };
    for (const since of [{ state: 'running' as const }, { replicaId: 'other' }, { executionId: 'n' }])
      expect(await putPausedSandbox(db, found, { ...was, ...since })).toBeNull();
    expect(await findExecution(db, was)).toEqual(was);
    const back = await putPausedSandbox(db, found, was);
    if (!back) throw new Error('it is as it was');
    expect(back).toMatchObject({
      ...{ executionId: 'found', state: 'paused', kept: 'memory', nodeId: 'node-2' },
      // The store has its previous state.
      ...{ replicaId: null, nextExecutionId: null, durability: null },
    });
    expect(await findExecution(db, { sandboxId: 'b', executionId: 'execution of b' })).toBeNull();
    expect(await findExecution(db, { sandboxId: 'b', executionId: 'found' })).toEqual(back);
    // A team can still see where a sandbox was, even when it is gone.
    await deleteSandbox(db, back, ['paused'], { reason: 'lost', atUs: startUs });
    expect(await eventsOf(db, 'b')).toEqual(['killed']);
    expect(await db.selectFrom('past_sandboxes').select('ended_at_us').execute()).toEqual([{ ended_at_us: startUs }]);
    const places = await placesOf(db, mine.teamId, ['a', 'b', 'none']);
    expect(places.toSorted((one, other) => (one.sandboxId < other.sandboxId ? -1 : 1))).toEqual([
      { sandboxId: 'a', nodeId: 'node-1' },
      { sandboxId: 'b', nodeId: 'node-2' },
    ]);
    expect(await placesOf(db, theirs.teamId, ['a', 'b'])).toEqual([]);
  });
});
