import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from 'bun:test';
import { Sandbox, Template } from 'e2b';
import { postgresPrograms } from '../api/postgres.ts';
import { testUnless } from '../support/skip.ts';
import {
  allReady,
  type Cluster,
  connectionTo,
  controlOf,
  createOn,
  layersEverywhere,
  nodeView,
  startCluster,
  twoMachines,
  until,
} from './support/cluster.ts';
import { testBuilds } from './support/build-tests.ts';
import { counted, startCounter } from './support/counter.ts';
import { inDirectory, inS3 } from './support/stores.ts';
import { content, type Volume, volumeOn } from './support/volumes.ts';

// Pauses that outlive their machine, with both kinds of store: separate machines, and a real S3 server that checks
// signatures.

setDefaultTimeout(20 * 60_000); // the S3 server may have to be built
const programs = postgresPrograms();
/** Size of a layer that goes to the store and comes back from it. */
const layerBytes = 40_000_000;
const [s3, directory] = [inS3(), inDirectory()];

for (const kind of [s3, directory])
  describe(kind.name, () => {
    const storeTest = testUnless(kind.skipped);
    let cluster: Cluster;
    beforeAll(async () => {
      if (!kind.skipped && programs)
        cluster = await startCluster(programs, { controls: 2, nodes: 4 }, { ATOLL_ISOLATION_SECONDS: '600' }, address =>
          kind.start(address),
        );
    });
    afterAll(async () => {
      await cluster?.[Symbol.asyncDispose]();
      await kind.stop();
    });
    testBuilds(storeTest, () => cluster);
    const pause = (sandboxId: string, body: object, control = 0) =>
      controlOf(cluster, control).call('POST', `/sandboxes/${sandboxId}/pause`, body);
    const detail = async (sandboxId: string, control = 0) =>
      (await (await controlOf(cluster, control).call('GET', `/sandboxes/${sandboxId}`)).json()) as {
        state: string;
        durability?: string;
      };

    storeTest('layers come from the store when the machine that made them is gone', async () => {
      await allReady(cluster);
      // Several parts in the store. The base template's own layers are in the machines' cache.
      const template = Template().fromTemplate('base').runCmd(`head -c ${layerBytes} /dev/urandom > /tmp/large`);
      const { templateId } = await Template.build(template, 'large', connectionTo(cluster, 0));
      const ofTemplate = `from builds where template_id = '${templateId}'`;
      await until('its layers are in the store', async () => {
        const builds = await cluster.query<{ layers_stored: number }>(`select layers_stored ${ofTemplate}`);
        return builds.length > 0 && builds.every(build => Number(build.layers_stored) === 1);
      });
      const [build] = await cluster.query<{ node_id: string }>(`select node_id ${ofTemplate}`);
      const maker = cluster.nodes.find(({ nodeId }) => nodeId === build?.node_id);
      if (!maker) throw new Error('nobody has built the template');
      await maker.destroy();
      cluster.nodes.splice(cluster.nodes.indexOf(maker), 1);
      await until('it is shown as out of reach', async () => (await nodeView(cluster, maker))?.status === 'unhealthy');
      expect((await cluster.admin(0, 'DELETE', `/admin/nodes/${maker.nodeId}`)).status).toBe(200);
      for (const node of cluster.nodes) {
        const sandbox = await createOn(cluster, node, {}, templateId);
        expect((await sandbox.commands.run('stat -c %s /tmp/large')).stdout).toBe(`${layerBytes}\n`);
        expect(await sandbox.kill()).toBe(true);
      }
    });

    storeTest('a pause tells what it outlives, and goes on where it was kept', async () => {
      await layersEverywhere(cluster);
      const sandbox = await Sandbox.create('base', connectionTo(cluster, 0));
      const before = await startCounter(sandbox);
      const kept = await pause(sandbox.sandboxId, {});
      expect([kept.status, kept.headers.get('X-Pause-Durability')]).toEqual([204, 'node']);
      expect(await detail(sandbox.sandboxId)).toMatchObject({ state: 'paused', durability: 'node' });
      // A repeated request stores nothing new.
      const stored = await pause(sandbox.sandboxId, { durability: 'cluster' }, 1);
      expect([stored.status, stored.headers.get('X-Pause-Durability')]).toEqual([204, 'cluster']);
      expect(await detail(sandbox.sandboxId)).toMatchObject({ state: 'paused', durability: 'cluster' });
      const after = await counted(await Sandbox.connect(sandbox.sandboxId, connectionTo(cluster, 0)));
      expect(after.pid).toBe(before.pid);
      expect(after.count).toBeGreaterThanOrEqual(before.count);
      expect((await detail(sandbox.sandboxId)).durability).toBe(undefined);
      // With the team's default, the SDK's ordinary pause is stored. Other control processes hear of the change a
      // moment later.
      const [team] = (await (await cluster.admin(0, 'GET', '/admin/teams')).json()) as { teamID: string }[];
      const setDefault = (pauseDurability: string) =>
        cluster.admin(0, 'PATCH', `/admin/teams/${team?.teamID}`, { pauseDurability });
      expect((await setDefault('cluster')).status).toBe(200);
      const usual = await Sandbox.create('base', { ...connectionTo(cluster, 0), lifecycle: { onTimeout: 'pause' } });
      expect(await usual.pause()).toBe(true);
      expect(await detail(usual.sandboxId)).toMatchObject({
        state: 'paused',
        durability: 'cluster',
        lifecycle: { onTimeout: 'pause', durability: 'cluster' },
      });
      expect((await setDefault('node')).status).toBe(200);
      for (const { sandboxId } of [sandbox, usual])
        expect(await Sandbox.kill(sandboxId, connectionTo(cluster, 0))).toBe(true);
    });

    storeTest('what a drained machine has paused goes on elsewhere, and comes back the same way', async () => {
      await allReady(cluster);
      const [one, two] = twoMachines(cluster);
      const sandbox = await createOn(cluster, one, { timeoutMs: 3_600_000 });
      const before = await startCounter(sandbox);
      for (const [from, to] of [
        [one, two],
        [two, one],
        [one, two],
      ] as const) {
        const drained = await cluster.atoll(0, 'node', 'drain', from.nodeId, '--mode', 'pause');
        expect(drained).toMatchObject({ code: 0 });
        expect(await detail(sandbox.sandboxId)).toMatchObject({ state: 'paused', durability: 'cluster' });
        const after = await counted(await Sandbox.connect(sandbox.sandboxId, connectionTo(cluster, 1)));
        expect(after.pid).toBe(before.pid);
        expect(await cluster.homeOf(sandbox.sandboxId)).toBe(to);
        expect((await cluster.atoll(0, 'node', 'uncordon', from.nodeId)).code).toBe(0);
        await allReady(cluster);
      }
      // What stayed behind is removed, not set aside.
      expect((await cluster.atoll(0, 'sandbox', 'orphans', '--json')).out).not.toContain(sandbox.sandboxId);
      expect(await sandbox.kill()).toBe(true);
    });

    storeTest('a sandbox goes on elsewhere with memory and files when its machine is destroyed', async () => {
      await allReady(cluster);
      const [lost, other] = cluster.nodes;
      if (!lost || !other) throw new Error('there are no two machines');
      const sandbox = await createOn(cluster, lost, { timeoutMs: 3_600_000 });
      const alone = await createOn(cluster, lost, { timeoutMs: 3_600_000 });
      const later = await createOn(cluster, lost, { timeoutMs: 3_600_000 });
      const ended = await createOn(cluster, lost, { timeoutMs: 3_600_000 });
      const text = 'x'.repeat(3_000_000);
      const volume = await volumeOn(cluster, lost, 'outlives');
      const written = Buffer.from('what was written to the volume');
      expect((await content(cluster, volume, 'PUT', 'file?path=/note', { body: written })).status).toBe(201);
      const writtenAt = Date.now();
      await sandbox.files.write('/home/user/large', text);
      const before = await startCounter(sandbox);
      expect((await pause(sandbox.sandboxId, { durability: 'cluster' })).status).toBe(204);
      expect((await pause(alone.sandboxId, {})).status).toBe(204);
      const ofLater = await startCounter(later);
      for (const { sandboxId } of [later, ended])
        expect((await pause(sandboxId, { durability: 'cluster' })).status).toBe(204);
      const volumePath = `/volumes/${volume.volumeID}`;
      const shown = async () => (await (await controlOf(cluster, 0).call('GET', volumePath)).json()) as Volume;
      await until('the volume is copied as it is', async () => Date.parse((await shown()).copiedAt ?? '') > writtenAt);
      const restore = () => controlOf(cluster, 1).call('POST', `${volumePath}/restore`);
      expect((await restore()).status).toBe(409);
      await lost.destroy();
      for (const control of [0, 1])
        await until(
          'it is shown as out of reach',
          async () => (await nodeView(cluster, lost, control))?.status === 'unhealthy',
        );
      const early = await restore();
      expect([early.status, await early.text()]).toEqual([409, expect.stringContaining('may come back')]);
      expect((await content(cluster, volume, 'GET', 'file?path=/note')).status).toBe(503);
      // What exists only on the machine is refused; what is in the store continues.
      const refused = await controlOf(cluster, 0).call('POST', `/sandboxes/${alone.sandboxId}/connect`, {
        timeout: 60,
      });
      expect(refused.status).toBe(503);
      const again = await Sandbox.connect(sandbox.sandboxId, connectionTo(cluster, 1));
      const after = await counted(again);
      expect(after.pid).toBe(before.pid);
      expect(after.count).toBeGreaterThanOrEqual(before.count);
      expect(await again.files.read('/home/user/large')).toBe(text);
      expect((await again.commands.run('cat /tmp/kept')).stdout).toBe('kept\n');
      expect(await cluster.homeOf(sandbox.sandboxId)).toBe(other);
      // There it is a sandbox like any other.
      expect((await pause(sandbox.sandboxId, { durability: 'cluster' })).status).toBe(204);
      expect((await counted(await Sandbox.connect(sandbox.sandboxId, connectionTo(cluster, 0)))).pid).toBe(before.pid);
      expect(await again.kill()).toBe(true);
      // Once the machine is removed for good, what existed only there is lost, and what is in the store is not.
      const forget = async () => (await cluster.admin(0, 'DELETE', `/admin/nodes/${lost.nodeId}`)).status;
      await until('it is out of reach for long enough', async () => (await forget()) === 200);
      expect((await controlOf(cluster, 0).call('GET', `/sandboxes/${alone.sandboxId}`)).status).toBe(404);
      // On request, a volume is restored from its copy, and the copy's age is reported.
      expect((await content(cluster, volume, 'GET', 'file?path=/note')).status).toBe(503);
      const restored = await restore();
      expect(restored.status).toBe(200);
      const { copiedAt, ageSeconds } = (await restored.json()) as { copiedAt: string; ageSeconds: number };
      expect(Date.parse(copiedAt)).toBeGreaterThan(writtenAt);
      expect(ageSeconds).toBeGreaterThan(0);
      expect(await (await content(cluster, volume, 'GET', 'file?path=/note')).text()).toBe(written.toString());
      const user = await Sandbox.create('base', {
        ...connectionTo(cluster, 0),
        volumeMounts: { '/data': 'outlives' },
      } as Parameters<typeof Sandbox.create>[1]);
      expect((await user.commands.run('cat /data/note; echo more >> /data/note')).stdout).toBe(written.toString());
      expect(await user.kill()).toBe(true);
      expect((await controlOf(cluster, 1).call('DELETE', volumePath)).status).toBe(204);
      expect((await counted(await Sandbox.connect(later.sandboxId, connectionTo(cluster, 0)))).pid).toBe(ofLater.pid);
      for (const { sandboxId } of [later, ended])
        expect(await Sandbox.kill(sandboxId, connectionTo(cluster, 1))).toBe(true);
    });

    if (kind === directory)
      storeTest('what a pause has kept can not be read in the store', async () => {
        const sandbox = await Sandbox.create('base', connectionTo(cluster, 0));
        const secret = 'a-secret-in-a-file-of-the-sandbox';
        await sandbox.files.write('/home/user/secret', secret.repeat(1000));
        expect((await pause(sandbox.sandboxId, { durability: 'cluster' })).status).toBe(204);
        const [blob] = await cluster.query<{ blob_id: string }>(
          "select blob_id from blobs where kind = 'pause' order by changed_at_us desc limit 1",
        );
        const parts = readdirSync(directory.folder(), { recursive: true, withFileTypes: true }).filter(
          entry => entry.isFile() && entry.parentPath.endsWith(blob?.blob_id ?? 'none'),
        );
        expect(parts.length).toBeGreaterThan(0);
        for (const { parentPath, name } of parts) {
          const bytes = readFileSync(join(parentPath, name));
          expect(bytes.length).toBeGreaterThan(1000);
          expect(bytes.includes(secret)).toBe(false);
        }
        expect(await sandbox.kill()).toBe(true);
      });
  });

describe('with wrong keys', () => {
  const wrongTest = testUnless(s3.skipped);
  let cluster: Cluster;
  beforeAll(async () => {
    if (!s3.skipped && programs)
      cluster = await startCluster(programs, { controls: 1, nodes: 1 }, {}, async address => ({
        ...(await s3.start(address)),
        ATOLL_STORE_SECRET: 'not-the-secret-of-this-key',
      }));
  });
  afterAll(async () => {
    await cluster?.[Symbol.asyncDispose]();
    await s3.stop();
  });

  wrongTest('creates and pauses on machines go on, and what needs the store says why it fails', async () => {
    await layersEverywhere(cluster);
    const control = controlOf(cluster, 0);
    await until('the log says so', () => control.log().includes('refuses the keys (SignatureDoesNotMatch)'));
    const sandbox = await Sandbox.create('base', connectionTo(cluster, 0));
    const before = await startCounter(sandbox);
    const refused = await control.call('POST', `/sandboxes/${sandbox.sandboxId}/pause`, { durability: 'cluster' });
    expect(refused.status).toBe(503);
    expect(await refused.json()).toMatchObject({ error_code: 'sandbox_pause_not_stored' });
    expect((await sandbox.commands.run('echo on')).stdout).toBe('on\n');
    expect((await control.call('POST', `/sandboxes/${sandbox.sandboxId}/pause`, {})).status).toBe(204);
    expect((await counted(await Sandbox.connect(sandbox.sandboxId, connectionTo(cluster, 0)))).pid).toBe(before.pid);
    expect(await sandbox.kill()).toBe(true);
    const { out } = await cluster.atoll(0, 'doctor', '--json');
    const store = (JSON.parse(out) as { name: string; status: string; detail: string }[]).find(
      ({ name }) => name === 'store',
    );
    expect(store).toMatchObject({ status: 'limited', detail: expect.stringContaining('refuses the keys') });
    expect(out + control.log()).not.toContain('not-the-secret-of-this-key');
  });
});
