import { expect } from 'bun:test';
import { Sandbox, Template } from 'e2b';
import type { testUnless } from '../../support/skip.ts';
import {
  allReady,
  type Cluster,
  connectionTo,
  controlOf,
  createOn,
  layersEverywhere,
  nodeView,
  twoMachines,
  until,
} from './cluster.ts';
import { counted, startCounter } from './counter.ts';

type Logs = { logs: { message: string; timestamp: string }[]; partial?: boolean };
type Metrics = { sandboxes: Record<string, unknown>; partial?: boolean };

/**
 * Tests of memory that sandboxes start from on other machines than the one that saved it: snapshots, forks, templates'
 * servers. They need two machines and a store, and destroy one machine at the end.
 */
export function testMemory(clusterTest: ReturnType<typeof testUnless>, cluster: () => Cluster): void {
  const connection = (control = 0) => connectionTo(cluster(), control);

  /** Waits until everything that builds have saved is in the store. */
  const allStored = () =>
    until('memory and layers are in the store', async () => {
      const builds = await cluster().query<{ layers_stored: number; memory_stored: number }>(
        "select layers_stored, memory_stored from builds where status = 'ready'",
      );
      return builds.every(build => Number(build.layers_stored) === 1 && Number(build.memory_stored) === 1);
    });

  clusterTest('a snapshot begins on another machine when its own takes no sandboxes', async () => {
    await layersEverywhere(cluster());
    const [one, two] = twoMachines(cluster());
    const sandbox = await createOn(cluster(), one);
    const before = await startCounter(sandbox);
    const snapshot = await sandbox.createSnapshot();
    await allStored();
    // It starts on the machine where it was taken, as long as that is there.
    const near = await Sandbox.create(snapshot.snapshotId, connection());
    expect(await cluster().homeOf(near.sandboxId)).toBe(one);
    expect((await counted(near)).pid).toBe(before.pid);
    await near.kill();
    const far = await createOn(cluster(), two, {}, snapshot.snapshotId);
    expect(await cluster().homeOf(far.sandboxId)).toBe(two);
    const after = await counted(far);
    expect(after.pid).toBe(before.pid);
    expect(after.count).toBeGreaterThanOrEqual(before.count);
    expect((await far.commands.run('cat /tmp/kept')).stdout).toBe('kept\n');
    // They are independent: neither sees what the other does.
    await far.commands.run('echo other > /tmp/kept');
    expect((await sandbox.commands.run('cat /tmp/kept')).stdout).toBe('kept\n');
    for (const made of [far, sandbox]) expect(await made.kill()).toBe(true);
  });

  clusterTest('memory that fits no machine is refused with the reason for each', async () => {
    await allReady(cluster());
    const [one, two] = twoMachines(cluster());
    const sandbox = await createOn(cluster(), one);
    const snapshot = await sandbox.createSnapshot();
    await allStored();
    // As if the machine's processors had more features.
    await cluster().query(
      `update blobs set facts_json = replace(facts_json, '"cpuFlags":[', '"cpuFlags":["of-the-future",')
       where kind = 'snapshot' and state = 'stored'`,
    );
    await cluster().admin(0, 'POST', `/nodes/${one.nodeId}`, { status: 'standby' });
    const answer = await controlOf(cluster(), 1).call('POST', '/sandboxes', { templateID: snapshot.snapshotId });
    const text = await answer.text();
    await cluster().admin(0, 'POST', `/nodes/${one.nodeId}`, { status: 'ready' });
    expect(text).toContain(`${two.nodeId}: its processors lack of-the-future`);
    expect(text).toContain('sandbox_no_compatible_node');
    expect(answer.status).toBe(400);
    expect(await sandbox.kill()).toBe(true);
  });

  clusterTest('forks for which their machine has no room begin on another one, as their source is now', async () => {
    await allReady(cluster());
    const [one, two] = twoMachines(cluster());
    const source = await createOn(cluster(), one);
    const before = await startCounter(source);
    // Another sandbox takes everything that the machine may promise.
    const filler = await createOn(cluster(), one);
    const [row] = await cluster().query<{ info_json: string }>(
      `select info_json from cluster_nodes where node_id = '${one.nodeId}'`,
    );
    const { memoryBytes } = JSON.parse(row?.info_json ?? '{}') as { memoryBytes: number };
    const promised = Math.floor((memoryBytes * 1.5) / (1 << 20));
    await cluster().query(`update sandboxes set memory_mib = ${promised} where sandbox_id = '${filler.sandboxId}'`);
    const answer = await controlOf(cluster(), 1).call('POST', `/sandboxes/${source.sandboxId}/fork`, {
      count: 1,
      timeout: 300,
    });
    const text = await answer.text();
    expect([answer.status, text]).toEqual([201, expect.stringContaining('sandboxID')]);
    const [fork] = JSON.parse(text) as { sandbox: { sandboxID: string } }[];
    const made = await Sandbox.connect(fork?.sandbox.sandboxID ?? '', connection());
    expect(await cluster().homeOf(made.sandboxId)).toBe(two);
    expect((await counted(made)).pid).toBe(before.pid);
    for (const each of [made, source, filler]) expect(await each.kill()).toBe(true);
  });

  clusterTest('a template with a server begins with its memory on a machine that has not built it', async () => {
    await allReady(cluster());
    const template = Template()
      .fromTemplate('base')
      .setStartCmd('echo $$ $(date +%N) > /tmp/started; sleep infinity', 'test -s /tmp/started');
    const built = await Template.build(template, 'server', connection());
    await allStored();
    const seen: string[] = [];
    for (const node of cluster().nodes) {
      const sandbox = await createOn(cluster(), node, {}, 'server');
      seen.push((await sandbox.commands.run('cat /tmp/started; pgrep -c sleep')).stdout);
      expect(await sandbox.kill()).toBe(true);
    }
    expect(built.templateId).not.toBe('');
    // The same value: the server was started once, during the build.
    expect(new Set(seen).size).toBe(1);
    expect(seen[0]).toEndWith('1\n');
  });

  const logsOf = async (sandboxId: string) =>
    (await (
      await controlOf(cluster(), 1).call('GET', `/v2/sandboxes/${sandboxId}/logs?direction=forward`)
    ).json()) as Logs;

  clusterTest('the log of a sandbox that has moved is that of both machines', async () => {
    await allReady(cluster());
    const [one, two] = twoMachines(cluster());
    const sandbox = await createOn(cluster(), one, { timeoutMs: 600_000 });
    expect((await cluster().atoll(0, 'node', 'drain', one.nodeId, '--mode', 'move')).code).toBe(0);
    expect(await cluster().homeOf(sandbox.sandboxId)).toBe(two);
    expect((await cluster().atoll(0, 'node', 'uncordon', one.nodeId)).code).toBe(0);
    await allReady(cluster());
    await until('what both machines did with it is in its log', async () => {
      const { logs, partial } = await logsOf(sandbox.sandboxId);
      const messages = logs.map(({ message }) => message).join('\n');
      const times = logs.map(({ timestamp }) => timestamp);
      expect(times).toEqual(times.toSorted());
      return (
        partial === undefined && /created from template/.test(messages) && /came from another machine/.test(messages)
      );
    });
    expect(await sandbox.kill()).toBe(true);
  });

  clusterTest('memory and logs in the store outlive their machine', async () => {
    await allReady(cluster());
    const [one, two] = twoMachines(cluster());
    const sandbox = await createOn(cluster(), one);
    const before = await startCounter(sandbox);
    const snapshot = await sandbox.createSnapshot();
    await allStored();
    const ended = await createOn(cluster(), one);
    expect(await ended.kill()).toBe(true);
    const written = await logsOf(ended.sandboxId);
    await until('the log of the one that has ended is in the store', async () => {
      const [row] = await cluster().query<{ logs_stored: number }>(
        `select logs_stored from past_sandboxes where sandbox_id = '${ended.sandboxId}'`,
      );
      return Number(row?.logs_stored) === 1;
    });
    await one.destroy();
    cluster().nodes.splice(0, 1);
    await until('it is shown as out of reach', async () => (await nodeView(cluster(), one))?.status === 'unhealthy');
    expect(written.logs.length).toBeGreaterThan(1);
    expect(await logsOf(ended.sandboxId)).toEqual(written);
    // For a sandbox running there, the answer says that there may be more; the same goes for its metrics.
    expect(await logsOf(sandbox.sandboxId)).toEqual({ logs: [], partial: true });
    const ask = (path: string) => controlOf(cluster(), 0).call('GET', path);
    const metrics = await ask(`/sandboxes/metrics?sandbox_ids=${sandbox.sandboxId}`);
    expect((await metrics.json()) as Metrics).toEqual({ sandboxes: {}, partial: true });
    const samples = await ask(`/sandboxes/${sandbox.sandboxId}/metrics`);
    expect([samples.headers.get('X-Partial'), await samples.json()]).toEqual(['true', []]);
    expect(await Sandbox.getMetrics(sandbox.sandboxId, connection())).toEqual([]);
    const made = await Sandbox.create(snapshot.snapshotId, connection());
    expect(await cluster().homeOf(made.sandboxId)).toBe(two);
    expect((await counted(made)).pid).toBe(before.pid);
    expect(await made.kill()).toBe(true);
  });
}
