import { expect, setDefaultTimeout } from 'bun:test';
import { Sandbox } from 'e2b';
import { hostsOf } from '../../src/api/database/postgres/hosts.ts';
import { type PostgresPair, startPair } from '../api/postgres-pair.ts';
import { postgresPrograms, withoutPostgres } from '../api/postgres.ts';
import {
  type Cluster,
  connectionTo,
  controlOf,
  layersEverywhere,
  startCluster,
  until,
} from '../cluster/support/cluster.ts';
import { counted, startCounter } from '../cluster/support/counter.ts';
import { atRest } from '../cluster/support/invariants.ts';
import { testUnless } from '../support/skip.ts';

// A database that fails over to its standby under a cluster with machines and sandboxes of its own.

setDefaultTimeout(10 * 60_000);
const programs = postgresPrograms();
const clusterTest = testUnless(withoutPostgres());

async function withPair(isSync: boolean, work: (cluster: Cluster, pair: PostgresPair) => Promise<void>): Promise<void> {
  await using pair = await startPair(programs ?? '', { isSync });
  const url = pair.location.kind === 'postgres' ? pair.location.url : '';
  let present = 0;
  const promote = () => {
    present = 1;
    return pair.promote();
  };
  const database = { url, present: () => hostsOf(url)[present] ?? '' };
  const env = { ATOLL_ISOLATION_SECONDS: '600' };
  await using cluster = await startCluster(programs ?? '', { controls: 2, nodes: 2 }, env, undefined, database);
  await work(cluster, { ...pair, promote });
}

const isBack = async (cluster: Cluster) => {
  const answers = cluster.controls.map(control => control.call('GET', '/v2/sandboxes'));
  return (await Promise.all(answers)).every(({ status }) => status === 200);
};

clusterTest('with a synchronous standby sandboxes run on, and what was answered is there', async () => {
  await withPair(true, async (cluster, pair) => {
    await layersEverywhere(cluster);
    const made = await Promise.all([0, 1, 0, 1].map(number => Sandbox.create('base', connectionTo(cluster, number))));
    const before = await Promise.all(made.map(sandbox => startCounter(sandbox)));
    const gone = await Sandbox.create('base', connectionTo(cluster, 0));
    expect(await gone.kill()).toBe(true);
    await pair.first.stop('immediate');
    // Known sandboxes are still served while there is no database.
    for (const sandbox of made) expect((await sandbox.commands.run('echo on')).stdout).toBe('on\n');
    await pair.promote();
    await until('both control processes have found the other server', () => isBack(cluster));
    for (const [index, { sandboxId }] of made.entries()) {
      const after = await counted(await Sandbox.connect(sandboxId, connectionTo(cluster, index % 2)));
      expect(after.pid).toBe(before[index]?.pid ?? '');
      expect(after.count).toBeGreaterThan(before[index]?.count ?? 0);
    }
    for (const control of [0, 1])
      await expect(Sandbox.getInfo(gone.sandboxId, connectionTo(cluster, control))).rejects.toThrow('not found');
    const later = await Sandbox.create('base', connectionTo(cluster, 1));
    for (const { sandboxId } of [...made, later])
      expect(await Sandbox.kill(sandboxId, connectionTo(cluster, 0))).toBe(true);
    await atRest(cluster);
  });
});

clusterTest('what an asynchronous standby lacks is set aside with its memory, and can be given back', async () => {
  await withPair(false, async (cluster, pair) => {
    await layersEverywhere(cluster);
    const known = await Sandbox.create('base', connectionTo(cluster, 0));
    const ofKnown = await startCounter(known);
    await until('the standby has all', async () => {
      const [row] = await cluster.query<{ same: boolean }>(
        'select coalesce(bool_and(replay_lsn = pg_current_wal_lsn()), false) as same from pg_stat_replication',
      );
      return row?.same ?? false;
    });
    await pair.second.stop('fast');
    const lacking = await Sandbox.create('base', { ...connectionTo(cluster, 0), timeoutMs: 3_600_000 });
    const before = await startCounter(lacking);
    await pair.first.stop('immediate');
    await pair.second.start();
    await pair.promote();
    await until('both control processes have found the other server', () => isBack(cluster));
    type Orphans = { sandboxes: { sandboxID: string; reason: string }[] };
    const orphans = async () => (await (await cluster.admin(0, 'GET', '/admin/orphans')).json()) as Orphans;
    await until('it is set aside', async () => (await orphans()).sandboxes.length > 0);
    const [orphan, ...others] = (await orphans()).sandboxes;
    expect([orphan?.sandboxID, others]).toEqual([lacking.sandboxId, []]);
    expect(orphan?.reason).toContain('went over to another server');
    expect((await counted(await Sandbox.connect(known.sandboxId, connectionTo(cluster, 1)))).pid).toBe(ofKnown.pid);
    const [team] = (await (await cluster.admin(0, 'GET', '/admin/teams')).json()) as { teamID: string }[];
    const adopted = await cluster.admin(0, 'POST', `/admin/orphans/sandboxes/${lacking.sandboxId}/adopt`, {
      teamID: team?.teamID,
    });
    expect(adopted.status).toBe(204);
    const resumed = await controlOf(cluster, 1).call('POST', `/sandboxes/${lacking.sandboxId}/connect`, {
      timeout: 600,
    });
    expect(resumed.status).toBe(201);
    const after = await counted(await Sandbox.connect(lacking.sandboxId, connectionTo(cluster, 1)));
    expect(after.pid).toBe(before.pid);
    for (const { sandboxId } of [known, lacking])
      expect(await Sandbox.kill(sandboxId, connectionTo(cluster, 0))).toBe(true);
    await atRest(cluster);
  });
});
