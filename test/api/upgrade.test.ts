import { expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { digestOf } from '../../src/api/app/credential.ts';
import { startApi } from '../../src/api/start.ts';
import { connectStore, openStore } from '../../src/api/store/database.ts';
import type { Db, StoreLocation } from '../../src/api/store/database.ts';
import { migrate, migrations, schemaVersion } from '../../src/api/store/migrate.ts';
import { silentLog } from '../../src/base/log.ts';
import { onEachDatabase } from './databases.ts';
import { FakeNode } from './fake-node.ts';
import { Platform, call } from './platform.ts';

const names = Object.keys(migrations).toSorted();
const key = `e2b_${'ab'.repeat(20)}`;
const ids = { team: '5d1dbcf1-2f6c-4c40-a3c5-18ba0a1a5a11', sandbox: 'iabcdefghijklmnopqrst', execution: '7a4c17d1-9f64-4e43-8cf7-2a2bd0a1b111', build: '0d5f6a52-6d0f-4c4e-b3d5-5a1c1f0b7c11' };

/** An installation as the very first version left it. */
async function fillFirstSchema(db: Db): Promise<void> {
  const rows: Record<string, Record<string, unknown>> = {
    teams: { team_id: ids.team, name: 'Old', slug: 'old', limits_json: '{}', banned: 0, blocked: 0, created_at_us: 1 },
    api_keys: { key_id: ids.execution, team_id: ids.team, created_by: null, name: 'k', digest: digestOf('apiKey', key), value_length: 40, mask_prefix: 'ab', mask_suffix: 'abab', created_at_us: 1, last_used_at_us: null },
    templates: { template_id: 'aaaaaaaaaaaaaaaaaaaa', team_id: ids.team, kind: 'template', public: 0, created_by: null, created_at_us: 1, updated_at_us: 1, last_spawned_at_us: null, spawn_count: 3, build_count: 1 },
    template_names: { namespace: '', alias: 'base', template_id: 'aaaaaaaaaaaaaaaaaaaa', created_at_us: 1 },
    builds: { build_id: ids.build, template_id: 'aaaaaaaaaaaaaaaaaaaa', status: 'ready', cpu_count: 2, memory_mib: 512, disk_mib: 1024, agent_version: '0.6.4', layers_json: '["sha256:00"]', config_json: '{"defaultUser":"user","defaultWorkdir":"","buildEnv":{}}', created_at_us: 1, updated_at_us: 1, finished_at_us: 1 },
    build_tags: { template_id: 'aaaaaaaaaaaaaaaaaaaa', tag: 'default', build_id: ids.build, assigned_at_us: 1 },
    sandboxes: { sandbox_id: ids.sandbox, execution_id: ids.execution, team_id: ids.team, node_id: 'node-1', state: 'running', template_id: 'aaaaaaaaaaaaaaaaaaaa', build_id: ids.build, alias: 'base', agent_version: '0.6.4', cpu_count: 2, memory_mib: 512, disk_mib: 1024, created_at_us: 1, started_at_us: Date.now() * 1000, end_at_us: (Date.now() + 3_600_000) * 1000, timeout_seconds: 3600, secure: 1, auto_pause: 0, auto_pause_memory: 1, auto_resume: 0, allow_internet_access: null, network_json: null, metadata_json: '{"who":"old"}', env_vars_json: '{}', mcp_json: null, iam_json: null, volume_mounts_json: '[]' },
  };
  for (const [table, row] of Object.entries(rows)) {
    await sql`insert into ${sql.table(table)} (${sql.join(Object.keys(row).map(name => sql.ref(name)))}) values (${sql.join(Object.values(row))})`.execute(db);
  }
}

onEachDatabase(database => {
  test('what the first version wrote serves after every migration, whichever version ran between', async () => {
    expect(names.length).toBeGreaterThan(8);
    for (const between of [names[0], names[Math.floor(names.length / 2)]]) {
      const directory = mkdtempSync(join(tmpdir(), 'atoll-upgrade-'));
      try {
        const location: StoreLocation = (await database.location()) ?? { kind: 'sqlite', path: join(directory, 'old.sqlite') };
        {
          await using old = connectStore(location);
          await migrate(old.db, names[0]);
          await fillFirstSchema(old.db);
          await migrate(old.db, between);
          expect(await schemaVersion(old.db)).toBe(between ?? '');
        }
        const node = new FakeNode(join(directory, 'node'));
        await node.create({ sandboxId: ids.sandbox, executionId: ids.execution, resources: { cpuCount: 2, memoryMiB: 512, diskMiB: 1024 }, network: {} } as never);
        await using store = await openStore(location);
        expect(await schemaVersion(store.db)).toBe(names.at(-1) ?? '');
        const socketPath = join(directory, 'api.sock');
        const api = await startApi({ socketPath, store, node, seed: new Uint8Array(32), log: silentLog, checkAnswers: true });
        const ask = (method: string, path: string, body?: unknown) => call(socketPath, method, path, body, { 'x-api-key': key });
        expect((await ask('GET', '/v2/sandboxes')).body).toMatchObject([{ sandboxID: ids.sandbox, metadata: { who: 'old' } }]);
        expect((await ask('GET', '/templates')).body).toMatchObject([{ templateID: 'aaaaaaaaaaaaaaaaaaaa', spawnCount: 3 }]);
        expect((await ask('POST', '/v2/sandboxes', { templateID: 'base' })).status).toBe(201);
        expect((await ask('DELETE', `/sandboxes/${ids.sandbox}`)).status).toBe(204);
        await api.stop();
      } finally {
        rmSync(directory, { recursive: true, force: true });
      }
    }
  });

  test('a schema of a newer version is refused with its name, and left as it is', async () => {
    await using platform = await Platform.start({ database });
    const { db } = platform.store;
    await sql`insert into kysely_migration (name, timestamp) values ('9999-future', 'x')`.execute(db);
    await expect(openStore(platform.location)).rejects.toThrow(/newer version.*9999-future/);
    expect(await schemaVersion(db)).toBe('9999-future');
  });
});
