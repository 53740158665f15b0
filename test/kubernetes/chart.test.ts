import { afterAll, beforeAll, expect, setDefaultTimeout } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Sandbox } from 'e2b';
import { postgresPrograms } from '../api/postgres.ts';
import { counted, startCounter } from '../cluster/support/counter.ts';
import { holdingsOf } from '../support/leaks.ts';
import { repository } from '../support/platform.ts';
import { runToEnd, waitFor } from '../support/process.ts';
import { testUnless } from '../support/skip.ts';
import { type Lab, startLab } from './support/lab.ts';
import { withoutKubernetes } from './support/programs.ts';

// The chart with the image of a release on a real Kubernetes of one machine, from `helm install` to `helm uninstall`; in
// between by the published SDK, through the Service.

setDefaultTimeout(60 * 60_000);
const reason =
  withoutKubernetes() ??
  (postgresPrograms() === null ? 'PostgreSQL is not installed (Debian: apt-get install postgresql)' : undefined);
const kubernetesTest = testUnless(reason);
const readyTimeoutMs = 15 * 60_000;

const chart = join(repository, 'ops/helm/atoll');
const dataDirIn = (folder: string) => join(folder, 'data');
const folder = mkdtempSync(join(tmpdir(), 'atoll-kubernetes-'));
let lab: Lab;

/** The image of a release: the file ATOLL_IMAGE, or one that is made now. */
async function imageFile(): Promise<string> {
  const given = process.env['ATOLL_IMAGE'];
  if (given !== undefined) return given;
  const release = join(folder, 'release');
  const made = await runToEnd(['node', join(repository, 'scripts/release.mjs'), release], { timeoutMs: 40 * 60_000 });
  if (made.exitCode !== 0) throw new Error(made.stderr);
  return join(release, readdirSync(release).find(entry => entry.endsWith('.oci.tar')) ?? '');
}

const inNamespace = (...args: string[]) => lab.kubectl('--namespace', 'sandboxes', ...args);
const values = (...more: string[]) =>
  [
    'image.pullPolicy=Never',
    'control.service.type=NodePort',
    `control.domain=${lab.address}.nip.test`,
    'control.resources.requests.cpu=50m',
    'control.resources.requests.memory=128Mi',
    `node.dataDir=${dataDirIn(lab.folder)}`,
    'settings.ATOLL_TEMPLATES=none',
    'settings.ATOLL_POOL_SIZE=1',
    'settings.ATOLL_LOG_LEVEL=info',
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

/** Waits until so many pods of a part are ready, and no others are there. */
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

/** The SDK's connection through the Service: by the port that each machine has for it. */
async function connection() {
  const text = await inNamespace('get', 'service', 'atoll-control', '-o', 'jsonpath={.spec.ports[0].nodePort}');
  const url = `http://${lab.address}:${text}`;
  const apiKey = (await inNamespace('exec', 'deploy/atoll-control', '--', 'cat', '/var/lib/atoll/api-key')).trim();
  return { apiKey, apiUrl: url, sandboxUrl: url, requestTimeoutMs: 240_000 };
}

const atoll = (...args: string[]) => inNamespace('exec', 'deploy/atoll-control', '--', 'atoll', ...args);

beforeAll(async () => {
  if (reason !== undefined) return;
  lab = await startLab(await imageFile(), dataDirIn);
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
    await lab[Symbol.asyncDispose]();
  }
  rmSync(folder, { recursive: true, force: true });
});

kubernetesTest('helm install: control and node are ready, and the node has joined by its service account', async () => {
  await helm('install', chart, '--wait', ...values());
  const controls = await podsReady('control', 2);
  expect(
    controls.every(({ spec }) => spec.containers.every(({ securityContext }) => !securityContext?.privileged)),
  ).toBe(true);
  await podsReady('node', 1);
  await waitFor('the node to be ready', async () => (await atoll('node', 'list')).includes('ready'), readyTimeoutMs);
});

kubernetesTest('tokens of other service accounts and of no pod let nobody join', async () => {
  const { apiUrl } = await connection();
  const tokens = [
    await inNamespace('create', 'token', 'default', '--audience', 'atoll'),
    await inNamespace('create', 'token', 'atoll-node', '--audience', 'atoll'),
    await inNamespace('create', 'token', 'atoll-node'),
    'forged',
  ];
  for (const token of tokens) {
    const body = { token: token.trim(), nodeID: crypto.randomUUID(), address: `${lab.address}:3010`, publicKey: '' };
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
  const sandbox = await Sandbox.create('base', await connection());
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
    const after = await waitFor(
      'the sandbox',
      async () =>
        Sandbox.connect(sandbox.sandboxId, await connection())
          .then(counted)
          .catch(() => undefined),
      readyTimeoutMs,
    );
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
    const sandbox = await Sandbox.create('base', to);
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
    const after = await counted(await Sandbox.connect(sandbox.sandboxId, to));
    expect(after.pid).toBe(before.pid);
    expect(after.count).toBeGreaterThanOrEqual(before.count);
    await sandbox.kill();
  },
);

kubernetesTest('helm upgrade replaces control while sandboxes are made and used, and no request fails', async () => {
  const to = await connection();
  const old = (await podsReady('control', 2)).map(({ metadata }) => metadata.uid);
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
    await Promise.race([helm('upgrade', chart, '--wait', ...values('settings.ATOLL_METRICS_HOURS=12')), load]);
    const now = (await podsReady('control', 2)).map(({ metadata }) => metadata.uid);
    expect(now.filter(uid => old.includes(uid))).toEqual([]);
  } finally {
    isOver = true;
  }
  await load;
  expect(rounds).toBeGreaterThan(0);
});

kubernetesTest('helm uninstall leaves no process, mount, link or rule on the machine, and the data', async () => {
  const dataDir = dataDirIn(lab.folder);
  await Sandbox.create('base', await connection());
  expect(holdingsOf(dataDir).processes).not.toEqual([]);
  await helm('uninstall', '--wait');
  expect(Object.values(holdingsOf(dataDir)).flat()).toEqual([]);
  const [links, rules] = await Promise.all([
    runToEnd([...lab.enter, 'ip', '-o', 'link']),
    runToEnd([...lab.enter, 'nft', 'list', 'tables']),
  ]);
  expect(links.stdout).not.toMatch(/ at\d+-/);
  expect(rules.stdout).not.toContain('atoll');
  expect(readdirSync(dataDir)).toContain('cluster-identity');
  await waitFor(
    'the pods that ended it to be gone',
    async () => (await inNamespace('get', 'all', '-o', 'name')).trim() === '',
    readyTimeoutMs,
  );
});
