import { expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectStore, openStore } from '../../src/api/database/database.ts';
import type { StoreLocation } from '../../src/api/database/db.ts';
import { dumpStore } from '../../src/api/database/dump.ts';
import { sandboxDirectory, sandboxFiles } from '../../src/api/backup/places.ts';
import { findVolume } from '../../src/api/volume/store/volumes.ts';
import { assert } from '../../src/base/error.ts';
import { forgetUnkept } from '../../src/api/backup/restored-state.ts';
import { packSandboxes } from '../../src/api/backup/sandboxes.ts';
import { writeState } from '../../src/api/backup/state.ts';
import { pack } from '../../src/api/backup/tar.ts';
import { loadDump } from '../../src/api/database/load-dump.ts';
import { recordVolumeEvent } from '../../src/api/event/store/write.ts';
import { inTransaction } from '../../src/api/database/db.ts';
import { onEachDatabase } from '../api/databases.ts';
import { Platform } from '../api/platform.ts';
import { layer } from '../api/support/layer.ts';

const nothing = async () => {};

onEachDatabase(database => {
  const scene = async (): Promise<
    { scratch: string; fresh(name: string): Promise<StoreLocation> } & AsyncDisposable
  > => {
    const scratch = mkdtempSync(join(tmpdir(), 'atoll-dump-'));
    return {
      scratch,
      fresh: async name => (await database.emptyLocation()) ?? { kind: 'sqlite', path: join(scratch, name) },
      [Symbol.asyncDispose]: async () => rmSync(scratch, { recursive: true, force: true }),
    };
  };
  const dumped = async (location: StoreLocation, scratch: string) => {
    const lines: string[] = [];
    for await (const { line } of dumpStore(location, join(scratch, 'copy.sqlite'))) lines.push(line);
    return lines;
  };
  async function* linesOf(lines: string[]) {
    yield* lines;
  }

  test('a state that the disk has no room for is no half of one', async () => {
    await using platform = await Platform.start({ database });
    await platform.createSandbox({ metadata: { long: 'x'.repeat(10_000) } });
    await using place = await scene();
    const full = join(place.scratch, 'full');
    mkdirSync(full);
    const run = (...argv: string[]) => expect(Bun.spawnSync(argv).exitCode).toBe(0);
    run('mount', '-t', 'tmpfs', '-o', 'size=8k', 'tmpfs', full);
    try {
      await expect(writeState(platform.location, full, join(place.scratch, 'copy.sqlite'))).rejects.toMatchObject({
        code: 'ENOSPC',
      });
    } finally {
      run('umount', full);
    }
  });

  test('an archive that the disk has no room for is refused by what to do', async () => {
    await using place = await scene();
    const full = join(place.scratch, 'full');
    const content = join(place.scratch, 'content');
    for (const path of [full, content]) mkdirSync(path);
    writeFileSync(join(content, 'file'), Buffer.alloc(100_000, 'x'));
    const run = (...argv: string[]) => expect(Bun.spawnSync(argv).exitCode).toBe(0);
    run('mount', '-t', 'tmpfs', '-o', 'size=16k', 'tmpfs', full);
    try {
      await expect(pack(content, join(full, 'backup'))).rejects.toMatchObject({
        code: 'no_space',
        message: expect.stringContaining(`There is no room for the backup on the disk of ${full}`),
      });
    } finally {
      run('umount', full);
    }
  });

  test('a dump that is loaded gives the same dump, also in the other kind of database', async () => {
    await using platform = await Platform.start({ database });
    await using place = await scene();
    await platform.call('POST', '/secrets', { name: 's', value: 'v', metadata: { quoted: '"\n\u0000\u{1f600}' } });
    const { sandboxID } = await platform.createSandbox({ metadata: { a: 'b' } });
    for (let i = 0; i < 700; i++)
      await inTransaction(platform.store.db, db =>
        recordVolumeEvent(
          db,
          { teamId: platform.team.teamId, volumeId: 'v', name: `n${i}` },
          { type: 'created', atUs: i },
        ),
      );
    await platform.call('POST', `/sandboxes/${sandboxID}/pause`);
    const lines = await dumped(platform.location, place.scratch);
    expect(lines.length).toBeGreaterThan(700);
    for (const target of [
      await place.fresh('same.sqlite'),
      { kind: 'sqlite', path: join(place.scratch, 'other.sqlite') } as const,
    ]) {
      await loadDump(target, linesOf(lines), nothing);
      expect(await dumped(target, place.scratch)).toEqual(lines);
      // Its automatic numbering continues.
      await using store = await openStore(target);
      await inTransaction(store.db, db =>
        recordVolumeEvent(
          db,
          { teamId: platform.team.teamId, volumeId: 'v', name: 'next' },
          { type: 'deleted', atUs: 1 },
        ),
      );
      const last = await store.db
        .selectFrom('events')
        .select(['type', 'sequence'])
        .orderBy('sequence', 'desc')
        .limit(2)
        .execute();
      expect(last[0]).toMatchObject({ type: 'volume.lifecycle.deleted', sequence: (last[1]?.sequence ?? 0) + 1 });
    }
  });

  test('restored state names no memory, sandbox and volume that was not restored with it', async () => {
    await using platform = await Platform.start({ database, features: { volumes: true } });
    await using place = await scene();
    const [running, paused] = [await platform.createSandbox(), await platform.createSandbox()];
    await platform.call('POST', `/sandboxes/${paused.sandboxID}/snapshots`, { name: 'shot' });
    await platform.call('POST', `/sandboxes/${paused.sandboxID}/pause`);
    const { db } = platform.store;
    const [build] = await db.selectFrom('builds').selectAll().where('source_sandbox_id', 'is', null).execute();
    const started = { snapshotId: 'kept-memory', layers: [layer('99')] };
    await db
      .updateTable('builds')
      .set({ config_json: JSON.stringify({ ...JSON.parse(build?.config_json ?? ''), started }) })
      .where('build_id', '=', build?.build_id ?? '')
      .execute();
    const volume = async (name: string) =>
      findVolume(db, ((await platform.call('POST', '/volumes', { name })).body as { volumeID: string }).volumeID);
    const [kept, _deleted, elsewhere] = [await volume('kept'), await volume('deleted'), await volume('elsewhere')];
    assert(kept !== null && elsewhere !== null, 'they were just made');
    await db.updateTable('volumes').set({ node_id: 'another' }).where('name', '=', 'elsewhere').execute();
    const target = await place.fresh('adjusted.sqlite');
    await loadDump(target, linesOf(await dumped(platform.location, place.scratch)), transaction =>
      forgetUnkept(transaction, { nodeId: kept.nodeId, sandboxes: [paused.sandboxID], volumes: [kept.volumeId] }, 5),
    );
    await using restored = await openStore(target);
    expect(await restored.db.selectFrom('sandboxes').select(['sandbox_id', 'state', 'kept']).execute()).toEqual([
      { sandbox_id: paused.sandboxID, state: 'paused', kept: 'filesystem' },
    ]);
    expect(await restored.db.selectFrom('volumes').select('name').orderBy('name').execute()).toEqual([
      { name: 'elsewhere' },
      { name: 'kept' },
    ]);
    expect(await restored.db.selectFrom('volume_removals').selectAll().execute()).toEqual([]);
    const builds = await restored.db.selectFrom('builds').select('config_json').execute();
    expect(builds).toHaveLength(2);
    expect(JSON.stringify(builds)).not.toContain('napshotId');
    const told = await restored.db
      .selectFrom('events')
      .select(['subject_id', 'body_json'])
      .where('type', '=', 'sandbox.lifecycle.killed')
      .execute();
    expect(told.map(({ subject_id, body_json }) => [subject_id, JSON.parse(body_json).eventData.kill_reason])).toEqual([
      [running.sandboxID, 'lost'],
    ]);
  });

  test('a sandbox that was resumed after the dump is left out, even where it is paused again', async () => {
    await using platform = await Platform.start({ database });
    await using place = await scene();
    const [still, again] = [await platform.createSandbox(), await platform.createSandbox()];
    for (const { sandboxID } of [still, again]) await platform.call('POST', `/sandboxes/${sandboxID}/pause`);
    const [dataDir, staging] = ['data', 'staging'].map(name => join(place.scratch, name)) as [string, string];
    for (const { sandboxID } of [still, again]) {
      const directory = sandboxDirectory(dataDir, sandboxID);
      mkdirSync(join(directory, 'kept'), { recursive: true });
      writeFileSync(join(directory, sandboxFiles.record), JSON.stringify({ state: 'paused', image: { layers: [] } }));
      writeFileSync(join(directory, sandboxFiles.disk), 'files');
    }
    mkdirSync(staging);
    const state = await writeState(platform.location, staging, join(place.scratch, 'copy.sqlite'));
    await platform.call('POST', `/sandboxes/${again.sandboxID}/connect`, { timeout: 60 });
    await platform.call('POST', `/sandboxes/${again.sandboxID}/pause`);
    const packing = packSandboxes({ dataDir, database: platform.location }, staging, state.paused);
    expect(await packing).toMatchObject({
      packed: [still.sandboxID],
      leftOut: [{ sandboxId: again.sandboxID, reason: 'it was resumed meanwhile' }],
    });
  });

  test('a dump is of one moment while others write', async () => {
    await using platform = await Platform.start({ database });
    await using place = await scene();
    let writing = true;
    const writer = (async () => {
      for (let i = 0; writing; i++) {
        // Two rows that exist only together.
        await platform.store.db.transaction().execute(async db => {
          await db
            .insertInto('users')
            .values({ user_id: `u${i}`, email: null, name: 'u', created_at_us: i, is_operator: 0, password_hash: null })
            .execute();
          await db
            .insertInto('team_members')
            .values({ team_id: platform.team.teamId, user_id: `u${i}`, is_default: 0, role: 'admin', created_at_us: i })
            .execute();
        });
        // SQLite answers at once: without this, nobody else would get a turn.
        await new Promise(resolve => setImmediate(resolve));
      }
    })();
    for (let round = 0; round < 5; round++) {
      const lines = await dumped(platform.location, place.scratch);
      const rows = (prefix: RegExp) => lines.filter(line => prefix.test(line)).length;
      expect(rows(/^\["u\d+",null/)).toBe(rows(/,"u\d+",0,/));
    }
    writing = false;
    await writer;
    const [any] = await platform.store.db
      .selectFrom('users')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .execute();
    expect(Number(any?.count)).toBeGreaterThan(5);
  });

  test('a database in use, a newer dump and a damaged one are refused, and nothing stays of them', async () => {
    await using platform = await Platform.start({ database });
    await using place = await scene();
    const lines = await dumped(platform.location, place.scratch);
    await expect(loadDump(platform.location, linesOf(lines), nothing)).rejects.toThrow('in use already');
    const fresh = await place.fresh('fresh.sqlite');
    await expect(
      loadDump(fresh, linesOf(['{"dump":1,"schema":"9999-future"}', ...lines.slice(1)]), nothing),
    ).rejects.toThrow('newer version');
    await expect(loadDump(fresh, linesOf([]), nothing)).rejects.toThrow('no JSON');
    await loadDump(fresh, linesOf(lines), nothing);
    const broken = await place.fresh('broken.sqlite');
    await expect(loadDump(broken, linesOf([...lines, '["too","short"]']), nothing)).rejects.toThrow('fits no table');
    await using store = connectStore(broken);
    expect(await store.db.selectFrom('teams').selectAll().execute()).toEqual([]);
  });
});
