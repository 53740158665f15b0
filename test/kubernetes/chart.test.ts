import { afterAll, beforeAll, expect, setDefaultTimeout } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Sandbox } from 'e2b';
import { postgresPrograms } from '../api/postgres.ts';
import { counted, startCounter } from '../cluster/support/counter.ts';
import { holdingsOf } from '../support/leaks.ts';
import { repository } from '../support/platform.ts';
import { runToEnd, waitFor } from '../support/process.ts';
import { type S3Server, startS3, withoutS3 } from '../support/s3-server.ts';
import { testUnless } from '../support/skip.ts';
import { earlierVersions } from '../upgrade/earlier.ts';
import { type Lab, startLab } from './support/lab.ts';
import type { StoredImage } from './support/machine.ts';
import { imageOf, imageOfThis } from './support/releases.ts';
import { withoutKubernetes } from './support/programs.ts';

// The chart with the image of a release on a real Kubernetes, from `helm install` of an earlier release to `helm
// uninstall`; in between it is used with the published SDK, through the Service.

setDefaultTimeout(60 * 60_000);
const reason =
  withoutKubernetes() ??
  withoutS3() ??
  (postgresPrograms() === null ? 'PostgreSQL is not installed (Debian: apt-get install postgresql)' : undefined);
const kubernetesTest = testUnless(reason);
const readyTimeoutMs = 15 * 60_000;

const chart = join(repository, 'ops/helm/atoll');
const dataDirIn = (folder: string) => join(folder, 'data');
const folder = mkdtempSync(join(tmpdir(), 'atoll-kubernetes-'));
const earlier = earlierVersions();
/** The tag of the image of the earlier release. */
const before = 'before';
let lab: Lab;
let store: S3Server;

const inNamespace = (...args: string[]) => lab.kubectl('--namespace', 'sandboxes', ...args);
const values = (...more: string[]) =>
  [
    'image.pullPolicy=Never',
    'control.service.type=NodePort',
    `control.domain=${lab.machine.address}.nip.test`,
    'control.resources.requests.cpu=50m',
    'control.resources.requests.memory=128Mi',
    `node.dataDir=${dataDirIn(lab.folder)}`,
    'node.tolerations[0].key=pretended',
    'node.tolerations[0].operator=Exists',
    'settings.ATOLL_TEMPLATES=none',
    'settings.ATOLL_POOL_SIZE=1',
    'settings.ATOLL_LOG_LEVEL=info',
    `settings.ATOLL_STORE=s3://${store.bucket}`,
    `settings.ATOLL_STORE_ENDPOINT=${store.endpoint}`,
    `settings.ATOLL_STORE_KEY_ID=${store.keyId}`,
    `settings.ATOLL_STORE_SECRET=${store.secret}`,
    ...more,
  ].flatMap(value => ['--set-string', value]);
const helm = (verb: string, ...args: string[]) =>
  lab.helm(verb, 'atoll', ...args, '--namespace', 'sandboxes', '--timeout', '15m');

type Pod = {
  metadata: { name: string; uid: string; deletionTimestamp?: string };
  status: { conditions?: { type: string; status: string }[]; containerStatuses?: { restartCount: number }[] };
  spec: { containers: { securityContext?: { privileged?: boolean } }[] };
};

async function podsOf(part: string): Promise<Pod[]> {
  const text = await inNamespace('get', 'pods', '-l', `app.kubernetes.io/component=${part}`, '-o', 'json');
  return (JSON.parse(text) as { items: Pod[] }).items;
}

const isReady = ({ metadata, status }: Pod) =>
  metadata.deletionTimestamp === undefined &&
  (status.conditions ?? []).some(({ type, status }) => type === 'Ready' && status === 'True');

/** Waits until this many pods of a part are ready, and no others exist. */
async function podsReady(part: string, count: number): Promise<Pod[]> {
  return waitFor(
    `${count} pods of ${part}`,
    async () => {
      const pods = await podsOf(part);
      return pods.length === count && pods.every(isReady) && pods;
    },
    readyTimeoutMs,
  );
}

/** The SDK's connection through the Service, by the port that each machine has for it. */
async function connection() {
  const text = await inNamespace('get', 'service', 'atoll-control', '-o', 'jsonpath={.spec.ports[0].nodePort}');
  const url = `http://${lab.machine.address}:${text}`;
  const apiKey = (await inNamespace('exec', 'deploy/atoll-control', '--', 'cat', '/var/lib/atoll/api-key')).trim();
  return { apiKey, apiUrl: url, sandboxUrl: url, requestTimeoutMs: 240_000 };
}

/** The counter's value in a sandbox, as soon as the sandbox can be reached. */
const reached = (sandboxId: string) =>
  waitFor(
    'the sandbox',
    async () =>
      Sandbox.connect(sandboxId, await connection())
        .then(counted)
        .catch(() => undefined),
    readyTimeoutMs,
  );

const atoll = (...args: string[]) => inNamespace('exec', 'deploy/atoll-control', '--', 'atoll', ...args);

beforeAll(async () => {
  if (reason !== undefined) return;
  const name = 'docker.io/library/atoll';
  const { version } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')) as { version: string };
  const images: StoredImage[] = [{ archive: await imageOfThis(join(folder, 'release')) }];
  // Before this one, because they may have the same version.
  if (!('missing' in earlier))
    images.unshift({ archive: await imageOf(earlier.before), tag: [`${name}:${version}`, `${name}:${before}`] });
  lab = await startLab(images, dataDirIn);
  store = await startS3(lab.machine.address, { enter: lab.machine.enter, port: 7480 });
  await lab.kubectl('create', 'namespace', 'sandboxes');
  const secret = (name: string, ...literals: string[]) =>
    inNamespace('create', 'secret', 'generic', name, ...literals.map(literal => `--from-literal=${literal}`));
  const random = () => randomBytes(32).toString('hex');
  await secret('atoll-identity', `seed=${random()}`, `admin-token=${random()}`, `metrics-token=${random()}`);
  await secret('atoll-database', `url=${lab.databaseUrl}`);
  await lab.kubectl('label', 'node', 'machine', 'atoll.dev/node=true');
});

afterAll(async () => {
  if (reason === undefined && lab !== undefined) {
    if (process.env['ATOLL_TEST_LOGS'] === '1') process.stderr.write(lab.logs());
    await store?.[Symbol.asyncDispose]();
    await lab[Symbol.asyncDispose]();
  }
  rmSync(folder, { recursive: true, force: true });
});

const earlierValues = () => ('missing' in earlier ? [] : [`image.tag=${before}`]);

kubernetesTest('helm install: control and node are ready, and the node has joined by its service account', async () => {
  await helm('install', chart, '--wait', ...values(...earlierValues()));
  const controls = await podsReady('control', 2);
  expect(
    controls.every(({ spec }) => spec.containers.every(({ securityContext }) => !securityContext?.privileged)),
  ).toBe(true);
  await podsReady('node', 1);
  await waitFor('the node to be ready', async () => (await atoll('node', 'list')).includes('ready'), readyTimeoutMs);
});

/** Makes and uses sandboxes, one after another, during `work`; answers how many. None may fail. */
async function underLoad(work: Promise<unknown>): Promise<number> {
  const to = await connection();
  let isOver = false;
  let rounds = 0;
  const load = (async () => {
    while (!isOver) {
      const sandbox = await Sandbox.create('base', to);
      expect((await sandbox.commands.run('echo here')).stdout).toBe('here\n');
      await sandbox.kill();
      rounds++;
    }
  })();
  try {
    await Promise.race([work, load]);
    await work;
  } finally {
    isOver = true;
  }
  await load;
  return rounds;
}

/** Deletes the node pods, one after another, and waits for their replacements. */
async function replaceNodePods(count: number): Promise<void> {
  for (const { metadata } of await podsReady('node', count)) {
    await inNamespace('delete', 'pod', metadata.name, '--wait=true');
    await waitFor(
      'another pod',
      async () => (await podsReady('node', count)).every(pod => pod.metadata.uid !== metadata.uid),
      readyTimeoutMs,
    );
  }
}

testUnless(reason ?? ('missing' in earlier ? earlier.missing : undefined))(
  'helm upgrade from the release before, under load: no request fails, and what ran and what was paused goes on',
  async () => {
    const to = await waitFor(
      'the base template',
      async () => {
        const to = await connection();
        const made = await Sandbox.create('base', to).catch(() => undefined);
        await made?.kill();
        return made && to;
      },
      readyTimeoutMs,
    );
    const lasting = () => Sandbox.create('base', { ...to, timeoutMs: 3_600_000 });
    const [running, paused] = [await lasting(), await lasting()];
    const [ran, kept] = [await startCounter(running), await startCounter(paused)];
    await paused.pause();
    const releases = async () =>
      (await inNamespace('exec', 'deploy/atoll-control', '--', 'cat', '/usr/lib/atoll/commit')).trim();
    const old = await releases();
    const rounds = await underLoad(helm('upgrade', chart, '--wait', ...values()));
    expect(rounds).toBeGreaterThan(0);
    expect(await releases()).not.toBe(old);
    expect(await reached(running.sandboxId)).toMatchObject({ pid: ran.pid });
    await replaceNodePods(1);
    for (const [sandbox, counter] of [
      [running, ran],
      [paused, kept],
    ] as const) {
      const after = await reached(sandbox.sandboxId);
      expect(after.pid).toBe(counter.pid);
      expect(after.count).toBeGreaterThanOrEqual(counter.count);
      await sandbox.kill();
    }
  },
);

kubernetesTest('tokens of other service accounts and of no pod let nobody join', async () => {
  const { apiUrl } = await connection();
  const tokens = [
    await inNamespace('create', 'token', 'default', '--audience', 'atoll'),
    await inNamespace('create', 'token', 'atoll-node', '--audience', 'atoll'),
    await inNamespace('create', 'token', 'atoll-node'),
    'forged',
  ];
  for (const token of tokens) {
    const body = {
      token: token.trim(),
      nodeID: crypto.randomUUID(),
      address: `${lab.machine.address}:3010`,
      publicKey: '',
    };
    const answer = await fetch(`${apiUrl}/cluster/join-pod`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    expect(answer.status).toBe(401);
  }
});

kubernetesTest('a sandbox made through the Service runs commands', async () => {
  const made = await waitFor(
    'the base template',
    async () => Sandbox.create('base', await connection()).catch(() => undefined),
    readyTimeoutMs,
  );
  expect((await made.commands.run('whoami')).stdout.trim()).toBe('user');
  await made.kill();
});

kubernetesTest('a node pod that is deleted, or killed, and replaced has not ended its sandboxes', async () => {
  const sandbox = await Sandbox.create('base', { ...(await connection()), timeoutMs: 3_600_000 });
  const before = await startCounter(sandbox);
  let last = before.count;
  for (const how of [['--wait=true'], ['--grace-period=0', '--force']]) {
    const [pod] = await podsReady('node', 1);
    await inNamespace('delete', 'pod', pod!.metadata.name, ...how);
    await waitFor(
      'another pod',
      async () => (await podsReady('node', 1))[0]?.metadata.uid !== pod!.metadata.uid,
      readyTimeoutMs,
    );
    const after = await reached(sandbox.sandboxId);
    expect(after.pid).toBe(before.pid);
    expect(after.count).toBeGreaterThan(last);
    last = after.count;
  }
  await sandbox.kill();
});

kubernetesTest(
  'a machine that is cordoned loses no sandbox: they are paused, for want of another one, and go on',
  async () => {
    const to = await connection();
    const sandbox = await Sandbox.create('base', { ...to, timeoutMs: 3_600_000 });
    const before = await startCounter(sandbox);
    await lab.kubectl('cordon', 'machine');
    await waitFor(
      'the sandbox to be paused',
      async () => (await Sandbox.getInfo(sandbox.sandboxId, to)).state === 'paused',
      readyTimeoutMs,
    );
    expect(await atoll('node', 'list')).toContain('draining');
    await lab.kubectl('uncordon', 'machine');
    await waitFor('the node to be ready', async () => (await atoll('node', 'list')).includes('ready'), readyTimeoutMs);
    const after = await reached(sandbox.sandboxId);
    expect(after.pid).toBe(before.pid);
    expect(after.count).toBeGreaterThanOrEqual(before.count);
    await sandbox.kill();
  },
);

kubernetesTest('helm upgrade replaces control while sandboxes are made and used, and no request fails', async () => {
  const old = (await podsReady('control', 2)).map(({ metadata }) => metadata.uid);
  const upgrade = helm('upgrade', chart, '--wait', ...values('settings.ATOLL_METRICS_HOURS=12'));
  expect(await underLoad(upgrade)).toBeGreaterThan(0);
  const now = (await podsReady('control', 2)).map(({ metadata }) => metadata.uid);
  expect(now.filter(uid => old.includes(uid))).toEqual([]);
});

type ListedNode = { id: string; status: string; sandboxCount: number };
const nodes = async () => JSON.parse(await atoll('node', 'list', '--json')) as ListedNode[];
const sandboxesOn = async (id: string) => (await nodes()).find(node => node.id === id)?.sandboxCount;
/** A machine promises each of its two processors four times, and a sandbox has two. */
const drained = 3;

kubernetesTest('kubectl drain moves what runs to another machine, and back: nothing is lost', async () => {
  const to = await connection();
  const [first] = await nodes();
  const other = await lab.add('other');
  const sandboxes = await Promise.all(
    Array.from({ length: drained }, () => Sandbox.create('base', { ...to, timeoutMs: 3_600_000 })),
  );
  const before = await Promise.all(sandboxes.map(startCounter));
  await lab.kubectl('label', 'node', other.name, 'atoll.dev/node=true');
  await podsReady('node', 2);
  const second = await waitFor(
    'the second node',
    async () => (await nodes()).find(({ id, status }) => id !== first!.id && status === 'ready'),
    readyTimeoutMs,
  );
  let last = before;
  for (const { name, from, target } of [
    { name: lab.machine.name, from: first!.id, target: second.id },
    { name: other.name, from: second.id, target: first!.id },
  ]) {
    await lab.kubectl('drain', name, '--ignore-daemonsets', '--delete-emptydir-data', '--timeout=10m');
    await waitFor('the machine to be empty', async () => (await sandboxesOn(from)) === 0, readyTimeoutMs);
    // Sandboxes that were paused, because the other machine was not ready at that moment, continue there.
    const after = await Promise.all(sandboxes.map(({ sandboxId }) => reached(sandboxId)));
    expect(await sandboxesOn(target)).toBe(drained);
    expect(after.map(({ pid }) => pid)).toEqual(before.map(({ pid }) => pid));
    for (const [index, { count }] of after.entries()) expect(count).toBeGreaterThan(last[index]!.count);
    last = after;
    await lab.kubectl('uncordon', name);
    await waitFor(
      'both to be ready',
      async () => (await nodes()).every(({ status }) => status === 'ready'),
      readyTimeoutMs,
    );
  }
  for (const sandbox of sandboxes) await sandbox.kill();
});

kubernetesTest(
  '200 machines that are pretended: each gets a pod, a real one works on, and marks are seen',
  async () => {
    const pretended = 200;
    await lab.pretend(pretended);
    await lab.kubectl('label', 'nodes', '--selector', 'pretended=true', 'atoll.dev/node=true');
    await podsReady('node', pretended + 2);
    await lab.kubectl('cordon', '--selector', 'pretended=true');
    const to = await connection();
    const sandbox = await Sandbox.create('base', to);
    expect((await sandbox.commands.run('echo here')).stdout).toBe('here\n');
    await lab.kubectl('cordon', 'other');
    await waitFor(
      'the mark among those of all others',
      async () => (await nodes()).filter(({ status }) => status === 'draining').length === 1,
      readyTimeoutMs,
    );
    await lab.kubectl('uncordon', 'other');
    await waitFor(
      'both to be ready',
      async () => (await nodes()).every(({ status }) => status === 'ready'),
      readyTimeoutMs,
    );
    await sandbox.kill();
  },
);

kubernetesTest('helm uninstall leaves no process, mount, link or rule on the machine, and the data', async () => {
  await Sandbox.create('base', await connection());
  const held = () => lab.machines.map(({ installation }) => holdingsOf(installation));
  expect(held().flatMap(({ processes }) => processes)).not.toEqual([]);
  await helm('uninstall', '--wait');
  expect(held().flatMap(holdings => Object.values(holdings).flat())).toEqual([]);
  for (const { enter } of lab.machines) {
    const [links, rules] = await Promise.all([
      runToEnd([...enter, 'ip', '-o', 'link']),
      runToEnd([...enter, 'nft', 'list', 'tables']),
    ]);
    expect(links.stdout).not.toMatch(/ at\d+-/);
    expect(rules.stdout).not.toContain('atoll');
  }
  expect(readdirSync(dataDirIn(lab.folder))).toContain('cluster-identity');
  await waitFor(
    'the pods that ended it to be gone',
    async () => (await inNamespace('get', 'all', '-o', 'name')).trim() === '',
    readyTimeoutMs,
  );
});
