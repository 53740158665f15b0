import { afterEach, beforeEach, expect, test } from 'bun:test';
import { AtollError } from '../../../base/error.ts';
import { endOfStream, envelopeOf } from '../../../base/envelopes.ts';
import { createLog } from '../../../base/telemetry/log.ts';
import { controlTokenTaken, type AgentInit } from '../../../protocol/agent.ts';
import { slotOf } from '../../layout.ts';
import { openNetworkNamespace } from '../../native/netns.ts';
import { startSandbox, type StartOrder, type StartParts } from './start-sandbox.ts';

const cleanUps: (() => unknown)[] = [];
beforeEach(() => void (cleanUps.length = 0));
afterEach(async () => {
  for (const cleanUp of cleanUps) await cleanUp();
});

type Origin = Parameters<typeof startSandbox>[2];

const slot = slotOf(0, 3);
const resources = { cpuCount: 2, memoryMiB: 512, diskMiB: 1024 };
const image = {
  templateId: 'a-template',
  buildId: 'a-build',
  layers: ['l1'],
  defaultUser: 'user',
  defaultWorkdir: '/work',
  buildEnv: { BUILT: 'in' },
  driver: 'crun',
};
const network = { allowInternetAccess: true };

/** An agent's answer to a command: it has run, and ended with this status. */
function ended(exitCode: number): Response {
  const message = (value: unknown, flags: number) => {
    const envelope = envelopeOf(Buffer.from(JSON.stringify(value)));
    envelope[0] = flags;
    return envelope;
  };
  const event = { end: { exitCode, status: `exit status ${exitCode}` } };
  const parts = [message({ event: { start: { pid: 1 } } }, 0), message({ event }, 0), message({}, endOfStream)];
  return new Response(Buffer.concat(parts), { headers: { 'Content-Type': 'application/connect+json' } });
}

/**
 * A node with one sandbox that waits, and a server that stands in for its agent. `happened` records what is done, in
 * order; those named in `fails` fail.
 */
function node(...failing: string[]) {
  const happened: string[] = [];
  const logged: string[] = [];
  const fails = new Set(failing);
  const inits: AgentInit[] = [];
  const written: unknown[] = [];
  const does = (what: string) => {
    happened.push(what);
    if (fails.has(what)) throw new AtollError('unavailable', `${what} failed`);
  };
  const attempts = async (what: string) => {
    await Promise.resolve();
    does(what);
  };
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      if (new URL(request.url).pathname === '/init') {
        inits.push((await request.json()) as AgentInit);
        happened.push('init');
        if (fails.has('init')) return new Response('no', { status: 500 });
        const takesToken = inits.at(-1)?.controlToken !== undefined && !fails.has('token');
        return new Response(null, { status: takesToken ? controlTokenTaken : 204 });
      }
      const text = Buffer.from(await request.arrayBuffer()).toString();
      happened.push(text.includes('is-ready') ? 'ready' : 'serve');
      return ended(fails.has('serve') && !text.includes('is-ready') ? 1 : 0);
    },
  });
  const own = openNetworkNamespace(process.pid);
  cleanUps.push(
    () => own.close(),
    () => server.stop(true),
  );
  const namespace = { ...own, connect: () => own.connect('ipv4', server.port ?? 0) };
  const driver = {
    name: 'crun',
    capabilities: { adoptsRoot: true },
    thaw: () => does('thaw'),
    killFrozen: () => does('kill'),
    nameHost: (_: number, name: string) => attempts(`name ${name}`),
  };
  const processes = { slot, pid: process.pid, namespace, driver, ended: new Promise(() => {}) };
  const standby = { processes, resources, layers: ['l1'], controlToken: 'its-token', bootId: 'its-boot' };
  const parts = {
    layout: { mounts: '/mounts', disks: '/disks' },
    agentDir: '/agents/present',
    layers: { mount: () => Promise.resolve('/layers/l1') },
    disks: { give: (from: string, to: string) => does(`give ${from} ${to}`) },
    processControl: { release: () => attempts('release') },
    egress: { apply: () => attempts('egress'), trusted: () => 'an authority' },
    records: {
      diskOf: (id: string) => `/sandboxes/${id}/disk`,
      keptOf: () => does('kept'),
      async write(record: unknown) {
        await attempts('record');
        written.push(record);
      },
    },
    volumes: { change: (_: unknown, work: () => unknown) => work() },
    pool: { take: () => standby },
    logOutput: true,
    requireLease: () => does('lease'),
    log: createLog('warn', line => logged.push(line)),
  } as unknown as StartParts;
  const order = {
    sandboxId: 'a',
    executionId: 'e',
    image,
    resources,
    network,
    envVars: { NAME: 'value' },
    accessToken: 'its-secret',
    volumes: [],
    driver,
    resumedFrom: null,
  } as unknown as StartOrder;
  const start = (origin: Origin, changes: Partial<StartOrder> = {}) =>
    startSandbox(parts, { ...order, ...changes }, origin);
  const ahead = { ...standby, image, agentDir: '/agents/earlier' };
  const restored = { kind: 'restored', standby: ahead } as unknown as Origin;
  return { start, restored, happened, logged, inits, written, processes };
}

const template: Origin = { kind: 'template' };
const commands = { startCommand: 'serve', readyCommand: 'is-ready' };
const served = { image: { ...image, ...commands } } as unknown as Partial<StartOrder>;
const given = 'give /disks/s3.img /sandboxes/a/disk';

test('a new sandbox has its policy, its disk, its settings and its server before it is recorded', async () => {
  const it = node();
  const { record, processes } = await it.start(template, served);
  expect(processes).toBe(it.processes as unknown as typeof processes);
  // The two run at the same time.
  expect(it.happened.slice(0, 2).sort()).toEqual(['egress', 'name a']);
  expect(it.happened.slice(2)).toEqual(['kept', given, 'init', 'lease', 'serve', 'ready', 'record']);
  expect(it.written).toEqual([record]);
  expect(record).toMatchObject({
    state: 'running',
    sandboxId: 'a',
    executionId: 'e',
    driver: 'crun',
    controlToken: 'its-token',
    bootId: 'its-boot',
    agentDir: '/agents/present',
    slot: 3,
    pid: process.pid,
    resumedFrom: null,
    network,
    resources,
  });
  expect(Math.abs(record.startedAtMs - Date.now())).toBeLessThan(60_000);
  for (const secret of ['its-secret', 'NAME']) expect(JSON.stringify(record)).not.toContain(secret);
  expect(it.inits).toEqual([
    {
      accessToken: 'its-secret',
      logOutput: true,
      envVars: { NAME: 'value' },
      filesLater: true,
      defaultUser: 'user',
      defaultWorkdir: '/work',
      hostname: 'a',
      caBundle: 'an authority',
    },
  ]);
});

test('processes that waited frozen go on under their own name, and start no server again', async () => {
  const it = node();
  const { record } = await it.start(it.restored, served);
  expect(it.happened).toEqual(['egress', 'lease', 'thaw', 'kept', given, 'name a', 'init', 'record']);
  expect(record.agentDir).toBe('/agents/earlier');
  expect(it.inits[0]).toMatchObject({ envVars: { NAME: 'value' }, entropy: expect.any(String) as unknown as string });
  for (const name of ['defaultUser', 'filesLater']) expect(it.inits[0]).not.toHaveProperty(name);
});

test('one that begins with the memory of others is recorded with a control token of its own', async () => {
  const [it, other] = [node(), node()];
  const { record } = await it.start(it.restored);
  expect(record.controlToken).toMatch(/^[0-9a-f]{64}$/);
  expect(it.inits).toMatchObject([{ controlToken: record.controlToken }]);
  expect(it.written).toEqual([record]);
  expect((await other.start(other.restored)).record.controlToken).not.toBe(record.controlToken);
});

test('if its agent is old and takes no other token, it is recorded with the token that the agent uses', async () => {
  const it = node('token');
  expect((await it.start(it.restored)).record.controlToken).toBe('its-token');
});

test('one that is resumed from its memory has its environment and its control token', async () => {
  const it = node();
  const { record } = await it.start(it.restored, { resumedFrom: 'memory' });
  for (const name of ['envVars', 'controlToken']) expect(it.inits[0]).not.toHaveProperty(name);
  expect(record.controlToken).toBe('its-token');
});

test('a start that fails leaves no processes, wherever it does', async () => {
  for (const failing of ['kept', given, 'init', 'lease', 'serve', 'record']) {
    const it = node(failing);
    await expect(it.start(template, served)).rejects.toThrow();
    expect(it.happened.at(-1)).toBe('release');
    expect(it.written).toEqual([]);
  }
});

test('processes that can’t be let out end frozen', async () => {
  for (const failing of ['egress', 'lease', 'thaw']) {
    const it = node(failing);
    await expect(it.start(it.restored)).rejects.toThrow(`${failing} failed`);
    expect(it.happened.slice(-3)).toEqual([failing, 'kill', 'release']);
    expect(it.happened).not.toContain('init');
  }
});

test('a sandbox that is resumed from its memory is one, whether its agent answers or not', async () => {
  const it = node('init');
  await it.start(it.restored, { resumedFrom: 'memory' });
  expect(it.written).toHaveLength(1);
  expect(it.happened).not.toContain('release');
  expect(it.logged.map(line => JSON.parse(line) as unknown)).toEqual([
    expect.objectContaining({ level: 'warn', sandboxId: 'a', error: expect.stringContaining('refused') as string }),
  ]);
});

test('the files of one that is resumed stay within reach where its server does not start', async () => {
  const it = node('serve');
  await it.start(template, { ...served, resumedFrom: 'filesystem' });
  expect(it.written).toHaveLength(1);
  expect(it.logged).toHaveLength(1);
  expect(JSON.parse(it.logged[0] ?? '')).toMatchObject({ sandboxId: 'a', level: 'warn' });
  // Its agent must answer for that.
  await expect(node('init').start(template, { ...served, resumedFrom: 'filesystem' })).rejects.toThrow();
});
