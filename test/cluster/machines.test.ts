import { connect } from 'node:net';
import { afterAll, beforeAll, expect, setDefaultTimeout } from 'bun:test';
import { Sandbox } from 'e2b';
import type { NodeInfo } from '../../src/protocol/node.ts';
import { postgresPrograms, withoutPostgres } from '../api/postgres.ts';
import { testUnless } from '../support/skip.ts';
import {
  allReady,
  type Cluster,
  connectionTo,
  controlOf,
  layersEverywhere,
  nodeView,
  nodeViews,
  startCluster,
  until,
} from './support/cluster.ts';
import { testBuilds } from './support/build-tests.ts';
import { counted, startCounter } from './support/counter.ts';
import { content, homeOfVolume, type Volume, volumeOn } from './support/volumes.ts';

// Two machines with networks of their own, two control processes and PostgreSQL, used through the published SDK.

setDefaultTimeout(300_000);
const programs = postgresPrograms();
const clusterTest = testUnless(withoutPostgres());

let cluster: Cluster;

beforeAll(async () => {
  const env = { ATOLL_ISOLATION_SECONDS: '600', ATOLL_CPU_OVERCOMMIT: '8' };
  if (programs) cluster = await startCluster(programs, { controls: 2, nodes: 2 }, env);
});
afterAll(async () => cluster?.[Symbol.asyncDispose]());

const connection = (control: number) => connectionTo(cluster, control);

clusterTest('machines that joined by a token are ready at both control processes', async () => {
  await allReady(cluster);
  expect((await nodeViews(cluster)).map(({ id }) => id).toSorted()).toEqual(
    cluster.nodes.map(({ nodeId }) => nodeId).toSorted(),
  );
  const said = await cluster.query<{ info: string }>('select info_json as info from cluster_nodes');
  expect(said.map(({ info }) => (JSON.parse(info) as NodeInfo).cpuOvercommit)).toEqual([8, 8]);
  // Control reports to the operator what their supervisors restart.
  const metrics = await (await cluster.admin(0, 'GET', '/metrics')).text();
  for (const { nodeId } of cluster.nodes)
    expect(metrics).toMatch(
      new RegExp(`atoll_process_restarts_total\\{node="${nodeId}",process="node",reason="stalled"\\} \\d`),
    );
});

clusterTest('sandboxes are made on both machines, and the SDK works through either control process', async () => {
  await layersEverywhere(cluster);
  const made: Sandbox[] = [];
  for (let number = 0; number < 4; number++) made.push(await Sandbox.create('base', connection(number % 2)));
  const counts = (await nodeViews(cluster)).map(({ sandboxCount }) => sandboxCount);
  expect(counts.reduce((sum, count) => sum + count)).toBe(4);
  expect(Math.min(...counts)).toBeGreaterThan(0);
  for (const { sandboxId } of made) {
    for (const control of [0, 1]) {
      const sandbox = await Sandbox.connect(sandboxId, connection(control));
      const { stdout } = await sandbox.commands.run(`echo ${control} >> /tmp/seen; cat /tmp/seen`);
      expect(stdout).toBe(['0\n', '0\n1\n'][control] ?? '');
      const content = 'x'.repeat(1_000_000);
      await sandbox.files.write('/tmp/large', content);
      expect(await sandbox.files.read('/tmp/large')).toBe(content);
    }
  }
  for (const [number, { sandboxId }] of made.entries())
    expect(await Sandbox.kill(sandboxId, connection((number + 1) % 2))).toBe(true);
  expect((await nodeViews(cluster)).map(({ sandboxCount }) => sandboxCount)).toEqual([0, 0]);
});

clusterTest(
  'a volume is read and written through any control process, and sandboxes with it are where it is',
  async () => {
    await layersEverywhere(cluster);
    const made: Volume[] = [];
    const homes: (string | undefined)[] = [];
    for (const [number, node] of cluster.nodes.entries()) {
      const volume = await volumeOn(cluster, node, `home-${number}`);
      made.push(volume);
      homes.push(await homeOfVolume(cluster, volume));
      expect(homes[number]).toBe(node.nodeId);
    }
    const large = Buffer.alloc(9_000_001, 'content of a volume ');
    for (const [number, volume] of made.entries()) {
      const { status } = await content(cluster, volume, 'PUT', 'file?path=/deep/large&force=true', { body: large });
      expect(status).toBe(201);
      const read = await content(cluster, volume, 'GET', 'file?path=/deep/large', { control: 1 });
      expect(Buffer.compare(Buffer.from(await read.arrayBuffer()), large)).toBe(0);
      expect((await content(cluster, volume, 'GET', 'file?path=/not-there', { control: 1 })).status).toBe(404);
      const sandbox = await Sandbox.create('base', {
        ...connection(1),
        volumeMounts: { '/data': `home-${number}` },
      } as Parameters<typeof Sandbox.create>[1]);
      expect((await cluster.homeOf(sandbox.sandboxId)).nodeId).toBe(homes[number] ?? '');
      await sandbox.commands.run('wc -c < /data/deep/large > /data/seen');
      expect(await (await content(cluster, volume, 'GET', 'file?path=/seen')).text()).toBe('9000001\n');
      expect(await sandbox.kill()).toBe(true);
    }
    // Nothing is left of an interrupted upload.
    const [first] = made;
    if (!first) throw new Error('there is no volume');
    const gone = new AbortController();
    const endless = new ReadableStream({
      pull(controller) {
        controller.enqueue(new Uint8Array(1 << 16));
        if (!gone.signal.aborted) setTimeout(() => gone.abort(), 200);
      },
    });
    const cut = fetch(`${controlOf(cluster, 0).url}/volumecontent/${first.volumeID}/file?path=/cut`, {
      method: 'PUT',
      headers: { Authorization: `Bearer ${first.token}` },
      body: endless,
      signal: gone.signal,
    });
    await expect(cut).rejects.toThrow();
    expect((await content(cluster, first, 'GET', 'file?path=/cut', { control: 1 })).status).toBe(404);
    const both = await controlOf(cluster, 0).call('POST', '/sandboxes', {
      templateID: 'base',
      volumeMounts: [
        { name: 'home-0', path: '/one' },
        { name: 'home-1', path: '/two' },
      ],
    });
    expect([both.status, await both.text()]).toEqual([400, expect.stringContaining('are on different machines')]);
    for (const { volumeID } of made)
      expect((await controlOf(cluster, 1).call('DELETE', `/volumes/${volumeID}`)).status).toBe(204);
  },
);

clusterTest('a control process that is killed costs nothing that another one has', async () => {
  const sandbox = await Sandbox.create('base', connection(0));
  await controlOf(cluster, 0).kill9();
  const same = await Sandbox.connect(sandbox.sandboxId, connection(1));
  expect((await same.commands.run('echo on')).stdout).toBe('on\n');
  expect(await Sandbox.kill(sandbox.sandboxId, connection(1))).toBe(true);
  await controlOf(cluster, 0).restart();
  expect((await controlOf(cluster, 0).call('GET', '/v2/sandboxes')).status).toBe(200);
});

clusterTest('a machine that is cut off for less than control waits goes on as if nothing had been', async () => {
  await allReady(cluster);
  const sandbox = await Sandbox.create('base', connection(0));
  const before = await startCounter(sandbox);
  const node = await cluster.homeOf(sandbox.sandboxId);
  await node.cut();
  await until('it is shown as out of reach', async () => (await nodeView(cluster, node))?.status === 'unhealthy');
  const away = await nodeView(cluster, node);
  expect(Date.parse(away?.statusChangedAt ?? '')).toBeWithin(Date.parse('2020-01-01'), Date.now());
  expect(away?.sandboxCount).toBe(1);
  expect((await cluster.atoll(0, 'node', 'list')).out).toMatch(new RegExp(`${node.nodeId} +unhealthy`));
  expect((await Sandbox.getInfo(sandbox.sandboxId, connection(1))).state).toBe('running');
  await node.heal();
  await allReady(cluster);
  const back = await nodeView(cluster, node);
  expect(Date.parse(back?.statusChangedAt ?? '')).toBeGreaterThan(Date.parse(away?.statusChangedAt ?? ''));
  const after = await counted(await Sandbox.connect(sandbox.sandboxId, connection(1)));
  expect(after.pid).toBe(before.pid);
  expect(after.count).toBeGreaterThan(before.count);
  expect(await sandbox.kill()).toBe(true);
});

clusterTest(
  'a machine gets another certificate while it works, and a control process that comes anew knows it',
  async () => {
    await allReady(cluster);
    const sandbox = await Sandbox.create('base', connection(0));
    const before = await startCounter(sandbox);
    const node = await cluster.homeOf(sandbox.sandboxId);
    const certificates = async () => {
      const where = `where node_id = '${node.nodeId}'`;
      const [row] = await cluster.query<{ all: string }>(`select certificates_json as all from cluster_nodes ${where}`);
      return JSON.parse(row?.all ?? '[]') as string[];
    };
    const seen = new Set(await certificates());
    // Twice: after the second time, the first certificate is worthless.
    for (const round of [1, 2]) {
      const known = await certificates();
      await cluster.query(`update cluster_nodes set renew_at_us = 1 where node_id = '${node.nodeId}'`);
      await until('it has another certificate', async () => (await certificates()).at(-1) !== known.at(-1));
      for (const digest of await certificates()) seen.add(digest);
      expect(seen.size).toBe(round + 1);
      await allReady(cluster);
      for (const control of [0, 1])
        expect((await counted(await Sandbox.connect(sandbox.sandboxId, connection(control)))).pid).toBe(before.pid);
    }
    expect(await certificates()).toHaveLength(2);
    await controlOf(cluster, 0).kill9();
    await controlOf(cluster, 0).restart();
    await allReady(cluster);
    const after = await counted(await Sandbox.connect(sandbox.sandboxId, connection(0)));
    expect(after.pid).toBe(before.pid);
    expect(await sandbox.kill()).toBe(true);
  },
);

clusterTest('a kill holds on every edge: an open stream breaks off, and the next request finds nothing', async () => {
  await allReady(cluster);
  const sandbox = await Sandbox.create('base', connection(0));
  const program = `
import socket, time
listening = socket.create_server(('0.0.0.0', 8003))
open('/tmp/8003.listens', 'w').close()
kept = []
while True:
    connection, _ = listening.accept()
    kept.append(connection)
    connection.recv(4096)
    connection.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 1000\\r\\n\\r\\nbody')
`;
  await sandbox.files.write('/tmp/serve.py', program);
  await sandbox.commands.run('python3 /tmp/serve.py', { background: true, timeoutMs: 0 });
  await sandbox.commands.run('until [ -e /tmp/8003.listens ]; do sleep 0.05; done');
  const request = (control: number) => {
    const { url, domain } = controlOf(cluster, control);
    return fetch(url, { headers: { Host: `8003-${sandbox.sandboxId}.${domain}`, Connection: 'close' } });
  };
  const streams = await Promise.all([0, 1].map(request));
  const readers = streams.map(answer => answer.body?.getReader());
  for (const reader of readers) expect(new TextDecoder().decode((await reader?.read())?.value)).toBe('body');
  const ends = readers.map(reader =>
    reader?.read().then(
      () => 'looked complete',
      () => 'broken off',
    ),
  );
  expect(await Sandbox.kill(sandbox.sandboxId, connection(0))).toBe(true);
  for (const control of [0, 1]) expect((await request(control)).status).toBeGreaterThanOrEqual(400);
  expect(await Promise.all(ends)).toEqual(['broken off', 'broken off']);
});

/** What a client reads from a server on a sandbox's port until the connection is over, and how it ended. */
async function readToEnd(sandbox: Sandbox, port: number): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const { url, domain } = controlOf(cluster, 0);
  let read = '';
  let told: Promise<unknown> | undefined;
  const socket = connect({ host: '127.0.0.1', port: Number(new URL(url).port) }, () =>
    socket.write(`GET / HTTP/1.1\r\nHost: ${port}-${sandbox.sandboxId}.${domain}\r\nConnection: close\r\n\r\n`),
  );
  socket.on('data', bytes => {
    read += bytes.toString();
    // Only now may the connection end: a reset overtakes unread data.
    if (read.includes('body')) told ??= sandbox.files.write(`/tmp/${port}.read`, 'yes');
  });
  socket.on('end', () => resolve(read.includes('body') ? 'ended' : `ended early: ${read}`));
  socket.on('error', () => resolve(read.includes('body') ? 'reset' : 'reset early'));
  const outcome = await promise;
  // Its answer may come after the end; the sandbox ends after that.
  await told;
  return outcome;
}

/** Answers with a body that ends with the connection, which ends once the client has read the body. */
const server = (port: number, beforeTheEnd: string) => `
import os, socket, struct, time
listening = socket.create_server(('0.0.0.0', ${port}))
open('/tmp/${port}.listens', 'w').close()
connection, _ = listening.accept()
connection.recv(4096)
connection.sendall(b'HTTP/1.0 200 OK\\r\\n\\r\\nbody')
while not os.path.exists('/tmp/${port}.read'): time.sleep(0.02)
${beforeTheEnd}
connection.close()
`;

clusterTest(
  'a server that breaks off on another machine breaks off for the client, and one that ends does so',
  async () => {
    await allReady(cluster);
    const sandbox = await Sandbox.create('base', connection(0));
    const noLinger = "connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))";
    for (const [port, beforeTheEnd, outcome] of [
      [8001, noLinger, 'reset'],
      [8002, '', 'ended'],
    ] as const) {
      await sandbox.files.write(`/tmp/${port}.py`, server(port, beforeTheEnd));
      await sandbox.commands.run(`python3 /tmp/${port}.py`, { background: true, timeoutMs: 0 });
      await sandbox.commands.run(`until [ -e /tmp/${port}.listens ]; do sleep 0.05; done`);
      expect(await readToEnd(sandbox, port)).toBe(outcome);
    }
    expect(await sandbox.kill()).toBe(true);
  },
);

testBuilds(clusterTest, () => cluster);
