import { expect, setDefaultTimeout } from 'bun:test';
import { testUnless } from '../../support/skip.ts';
import { Platform, until } from '../platform.ts';
import { PostgresCluster, postgresPrograms } from '../postgres.ts';

setDefaultTimeout(120_000);
const programs = postgresPrograms();

testUnless(programs === null ? 'PostgreSQL is not installed (Debian: apt-get install postgresql)' : undefined)(
  'the platform outlives a crash of PostgreSQL, keeps what was answered and lets in nobody whose key was revoked meanwhile',
  async () => {
    if (programs === null) return;
    await using cluster = await PostgresCluster.start(programs);
    const location = await cluster.newStore();
    await using platform = await Platform.start({ database: { name: 'PostgreSQL', location: async () => location } });
    const { sandboxID } = await platform.createSandbox();
    const status = async (path = `/sandboxes/${sandboxID}`) => (await platform.call('GET', path)).status;
    await cluster.crash();
    await until(async () => (await status()) === 200, 60_000);
    expect(platform.node.executions()).toHaveLength(1);
    await platform.store.db.deleteFrom('api_keys').execute();
    await until(async () => (await status()) === 401, 60_000);
  },
);
