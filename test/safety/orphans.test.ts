import { expect, test } from 'bun:test';
import { Database } from 'bun:sqlite';
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Sandbox } from 'e2b';
import { repository, startPlatform, type TestPlatform } from '../support/platform.ts';
import { atoll, upOnce } from './support/directory.ts';

const timeoutMs = 240_000;
const program = join(repository, 'bin/atoll');
const clientOf = ({ ready }: TestPlatform) => ({
  apiKey: ready.apiKey,
  apiUrl: ready.url,
  sandboxUrl: ready.url,
  domain: ready.domain,
});
type Orphans = { sandboxes: { sandboxID: string; reason: string }[]; volumes: { volumeID: string }[] };
const orphansOf = async (platform: TestPlatform) =>
  JSON.parse((await atoll(platform.env, 'sandbox', 'orphans', '--json')).stdout) as Orphans;
const idsOf = ({ sandboxes }: Orphans) => sandboxes.map(({ sandboxID }) => sandboxID).toSorted();
const databaseOf = ({ ready }: TestPlatform) => join(ready.dataDir, 'api/atoll.sqlite');

/** A sandbox with a file of its own. */
async function sandboxWith(platform: TestPlatform, note: string): Promise<Sandbox> {
  const sandbox = await Sandbox.create({ ...clientOf(platform), timeoutMs: 600_000 });
  await sandbox.files.write('/home/user/note', note);
  return sandbox;
}

test(
  'sandboxes that the store does not know are stopped, kept, listed, adopted and removed; with their own database they are back',
  async () => {
    await using platform = await startPlatform();
    const { dataDir } = platform.ready;
    const paused = await sandboxWith(platform, 'paused');
    await paused.pause();
    const running = await sandboxWith(platform, 'running');
    const unwanted = await sandboxWith(platform, 'unwanted');
    const ids = [paused, running, unwanted].map(({ sandboxId }) => sandboxId).toSorted();
    const snapshot = await running.createSnapshot();
    const volume = (await (await platform.api('POST', '/volumes', { name: 'data' })).json()) as { volumeID: string };
    await platform.stop();

    // An operator who has lost the database for good continues without it.
    copyFileSync(databaseOf(platform), join(dataDir, 'right.sqlite'));
    rmSync(databaseOf(platform));
    const layers = readdirSync(join(dataDir, 'node/layers')).toSorted();
    const accepted = await upOnce([program, 'up', '--json', '--accept-database'], platform.env);
    expect(accepted.served).toBe(true);
    expect(accepted.stderr.split('is set aside')).toHaveLength(4);
    await platform.restart();
    platform.ready.apiKey = readFileSync(join(dataDir, 'api-key'), 'utf8').trim();
    expect(idsOf(await orphansOf(platform))).toEqual(ids);
    expect((await platform.api('GET', '/v2/sandboxes')).status).toBe(200);
    const table = await atoll(platform.env, 'sandbox', 'orphans');
    expect(table.stdout).toContain('the database did not know it');
    expect(await atoll(platform.env, 'sandbox', 'discard', unwanted.sandboxId)).toMatchObject({ exitCode: 0 });
    expect(existsSync(join(dataDir, 'node/sandboxes', unwanted.sandboxId))).toBe(false);
    for (const sandbox of [paused, running])
      expect(await atoll(platform.env, 'sandbox', 'adopt', sandbox.sandboxId)).toMatchObject({ exitCode: 0 });
    expect(idsOf(await orphansOf(platform))).toEqual([]);
    expect(await atoll(platform.env, 'sandbox', 'adopt', paused.sandboxId)).toMatchObject({ exitCode: 1 });
    for (const [sandbox, note] of [
      [paused, 'paused'],
      [running, 'running'],
    ] as const) {
      const again = await Sandbox.connect(sandbox.sandboxId, clientOf(platform));
      expect(await again.files.read('/home/user/note')).toBe(note);
      await again.pause();
    }
    // What only the lost database knew stays, too.
    expect(readdirSync(join(dataDir, 'node/layers'))).toEqual(expect.arrayContaining(layers));
    expect(existsSync(join(dataDir, 'node/volumes', volume.volumeID))).toBe(true);
    await platform.stop();

    // The right database is found again: refused as older, accepted on demand; what it knows is simply back.
    copyFileSync(join(dataDir, 'right.sqlite'), databaseOf(platform));
    for (const suffix of ['-wal', '-shm']) rmSync(databaseOf(platform) + suffix, { force: true });
    expect((await atoll(platform.env, 'up')).stderr).toContain('holds an older state');
    expect((await upOnce([program, 'up', '--json', '--accept-database'], platform.env)).served).toBe(true);
    await platform.restart();
    platform.ready.apiKey = readFileSync(join(dataDir, 'api-key'), 'utf8').trim();
    expect((await orphansOf(platform)).volumes).toEqual([]);
    expect(snapshot.snapshotId).not.toBe('');
    for (const sandboxID of idsOf(await orphansOf(platform)))
      expect((await atoll(platform.env, 'sandbox', 'adopt', sandboxID)).exitCode).toBe(0);
    expect(await (await Sandbox.connect(paused.sandboxId, clientOf(platform))).files.read('/home/user/note')).toBe(
      'paused',
    );
    expect((await atoll(platform.env, 'forget-unknown')).exitCode).toBe(0);
  },
  timeoutMs,
);

test(
  'a sandbox whose record is damaged is set aside with all that it has, and the rest goes on',
  async () => {
    await using platform = await startPlatform();
    const { dataDir } = platform.ready;
    const [damaged, whole] = [await sandboxWith(platform, 'damaged'), await sandboxWith(platform, 'whole')];
    await damaged.pause();
    await whole.pause();
    await platform.stop();
    const directory = join(dataDir, 'node/sandboxes', damaged.sandboxId);
    const record = readFileSync(join(directory, 'record.json'));
    for (const content of ['', '{"state":"paused"', '{}', '\0'.repeat(4096)]) {
      writeFileSync(join(directory, 'record.json'), content);
      await platform.restart();
      const orphans = await orphansOf(platform);
      expect(idsOf(orphans)).toEqual([damaged.sandboxId]);
      expect(orphans.sandboxes[0]?.reason).toContain('is damaged');
      expect((await platform.api('GET', `/sandboxes/${damaged.sandboxId}`)).status).toBe(200);
      expect(existsSync(join(directory, 'kept/disk.img'))).toBe(true);
      expect((await atoll(platform.env, 'sandbox', 'adopt', damaged.sandboxId)).exitCode).toBe(1);
      await platform.stop();
    }
    // Repaired, it is what it was.
    writeFileSync(join(directory, 'record.json'), record);
    await platform.restart();
    expect(idsOf(await orphansOf(platform))).toEqual([]);
    expect(await (await Sandbox.connect(damaged.sandboxId, clientOf(platform))).files.read('/home/user/note')).toBe(
      'damaged',
    );
    expect(await (await Sandbox.connect(whole.sandboxId, clientOf(platform))).files.read('/home/user/note')).toBe(
      'whole',
    );
  },
  timeoutMs,
);

test(
  'a start that runs out of descriptors ends no sandbox, whichever look it fails at',
  async () => {
    await using platform = await startPlatform();
    const sandboxes = [await sandboxWith(platform, '0'), await sandboxWith(platform, '1')];
    await sandboxes[0]?.pause();
    const known = new Database(databaseOf(platform), { readonly: true })
      .query<{ n: number }, []>('select count(*) as n from sandboxes')
      .get()?.n;
    expect(known).toBe(2);
    await platform.stop();
    let refused = 0;
    for (const descriptors of [24, 30, 36, 42, 50]) {
      const { served } = await upOnce(
        ['prlimit', `--nofile=${descriptors}`, program, 'up', '--json'],
        platform.env,
        3_000,
      );
      refused += served ? 0 : 1;
    }
    expect(refused).toBeGreaterThan(2);
    await platform.restart();
    for (const [index, sandbox] of sandboxes.entries()) {
      expect(await (await Sandbox.connect(sandbox.sandboxId, clientOf(platform))).files.read('/home/user/note')).toBe(
        `${index}`,
      );
    }
  },
  timeoutMs,
);
