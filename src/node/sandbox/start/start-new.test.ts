import { afterEach, expect, test } from 'bun:test';
import { createLog } from '../../../base/telemetry/log.ts';
import type { CreateSandbox } from '../../../protocol/node.ts';
import { slotOf } from '../../layout.ts';
import { openNetworkNamespace } from '../../native/netns.ts';
import { beginningOf, startNew } from './start-new.ts';

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
});

const resources = { cpuCount: 2, memoryMiB: 512, diskMiB: 1024 };
const started = { snapshotId: 'of-the-build', layers: ['l1', 'l2'], resources };
const image = { templateId: 't', buildId: 'b', layers: ['l1'], defaultUser: 'user', defaultWorkdir: '', buildEnv: {} };
const request = (changes: object = {}, ofImage: object = {}) =>
  ({
    sandboxId: 'a',
    executionId: 'e',
    resources,
    network: {},
    envVars: {},
    accessToken: null,
    image: { ...image, ...ofImage },
    ...changes,
  }) as unknown as CreateSandbox;

/**
 * A node with a pool, and with a sandbox restored ahead if `waiting` is set. `happened` records what is done, in
 * order; each mention in `fails` fails once.
 */
function node(options: { waiting?: boolean; adoptsRoot?: boolean; fails?: string[]; startCommand?: string } = {}) {
  const { startCommand } = options;
  const happened: string[] = [];
  const logged: string[] = [];
  const taken: { snapshotId: string | null; recordsOrigin: boolean }[] = [];
  const fails = [...(options.fails ?? [])];
  const does = async (what: string) => {
    await Promise.resolve();
    happened.push(what);
    const at = fails.indexOf(what);
    if (at >= 0) throw new Error(`${fails.splice(at, 1)} failed`);
  };
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response(null, { status: 204 }) });
  const own = openNetworkNamespace(process.pid);
  cleanUps.push(
    () => own.close(),
    () => server.stop(true),
  );
  const namespace = { ...own, connect: () => own.connect('ipv4', server.port ?? 0) };
  const driver = {
    name: 'crun',
    capabilities: { adoptsRoot: options.adoptsRoot ?? true, withoutCheckpoints: null as string | null },
    thaw: () => happened.push('thaw'),
    killFrozen: () => happened.push('kill'),
  };
  const processes = { slot: slotOf(0, 3), pid: process.pid, namespace, driver, ended: new Promise(() => {}) };
  const standby = { processes, resources, layers: ['l1'], controlToken: 'c', bootId: 'b' };
  const parts = {
    layout: { mounts: '/mounts', disks: '/disks', snapshots: '/no/snapshots' },
    agentDir: '/agents/present',
    layers: { mount: () => Promise.resolve('/layers/l1') },
    disks: { give: () => happened.push('give') },
    processControl: { release: () => does('release') },
    egress: { apply: () => does('egress'), trusted: () => undefined },
    records: {
      diskOf: () => '/disk',
      keptOf: () => '/kept',
      write: () => does('record'),
      remove: () => does('remove'),
      forget: () => happened.push('forget'),
    },
    volumes: { change: (_: unknown, work: () => unknown) => work() },
    pool: { take: () => (happened.push('pool'), standby) },
    restoredAhead: {
      take(beginning: { snapshotId: string | null; recordsOrigin: boolean }) {
        taken.push({ snapshotId: beginning.snapshotId, recordsOrigin: beginning.recordsOrigin });
        return options.waiting
          ? { ...standby, image: { ...image, layers: ['of it'], startCommand }, agentDir: '/agents/e' }
          : undefined;
      },
    },
    drivers: { toStart: () => driver },
    checkpoints: { supported: false, reason: 'no CRIU' } as { supported: boolean },
    openings: {},
    logOutput: true,
    requireLease: () => {},
    log: createLog('warn', line => logged.push(line)),
  };
  const start = (of: CreateSandbox) => startNew(parts as unknown as Parameters<typeof startNew>[0], of);
  const beginning = (of: CreateSandbox) => beginningOf(parts as unknown as Parameters<typeof beginningOf>[0], of);
  return { start, beginning, happened, logged, taken, driver, parts };
}

test('a sandbox begins with the memory that it is created from, or with its template’s server if that fits', () => {
  const it = node();
  expect(it.beginning(request())).toBeUndefined();
  expect(it.beginning(request({}, { memorySnapshotId: 'm' }))).toMatchObject({ snapshotId: 'm', recordsOrigin: false });
  const fits = request({}, { started });
  // Without CRIU it boots.
  expect(it.beginning(fits)).toBeUndefined();
  it.parts.checkpoints.supported = true;
  const found = it.beginning(fits);
  expect(found).toMatchObject({ snapshotId: 'of-the-build', recordsOrigin: true, resources });
  expect(found?.image).toMatchObject({ layers: ['l1', 'l2'], memorySnapshotId: 'of-the-build', buildId: 'b' });
  expect(found?.image).not.toHaveProperty('started');
  // The disk may have any size; memory and processors must be those that the server has seen.
  expect(it.beginning(request({ resources: { ...resources, diskMiB: 1 } }, { started }))).toBeDefined();
  for (const changes of [
    { volumes: [{ volumeId: 'v', path: '/v' }] },
    { resources: { ...resources, cpuCount: 1 } },
    { resources: { ...resources, memoryMiB: 1 } },
  ])
    expect(it.beginning(request(changes, { started }))).toBeUndefined();
  expect(it.beginning(request({ volumes: [] }, { started }))).toBeDefined();
  it.driver.capabilities.withoutCheckpoints = 'it has none';
  for (const ofImage of [{ started }, { memorySnapshotId: 'm' }])
    expect(it.beginning(request({}, ofImage))).toBeUndefined();
});

test('a sandbox of a template begins with one of the pool', async () => {
  const it = node({ waiting: true });
  const { record } = await it.start(request());
  expect(record).toMatchObject({ resumedFrom: null, volumes: [], agentDir: '/agents/present' });
  expect(it.taken).toEqual([]);
  expect(it.happened).toEqual(['pool', 'egress', 'give', 'record']);
});

test('one whose driver wants its root from the start takes a sandbox that waits', async () => {
  const it = node({ waiting: true, adoptsRoot: false });
  const { record } = await it.start(request());
  expect(it.taken).toEqual([{ snapshotId: null, recordsOrigin: true }]);
  expect(record.image.layers).toEqual(['of it']);
  expect(it.happened).toEqual(['egress', 'thaw', 'give', 'record']);
});

test('the processes of a snapshot that wait are taken, where the sandbox has no volumes', async () => {
  const it = node({ waiting: true });
  const { record } = await it.start(request({}, { memorySnapshotId: 'm' }));
  expect(it.taken).toEqual([{ snapshotId: 'm', recordsOrigin: false }]);
  expect(record).toMatchObject({ agentDir: '/agents/e', image: { layers: ['of it'] } });
  const volumes = [{ volumeId: 'v', path: '/v' }];
  await expect(it.start(request({ volumes }, { memorySnapshotId: 'm' }))).rejects.toMatchObject({
    code: 'precondition',
  });
  expect(it.taken).toHaveLength(1);
});

test('one whose server can’t begin with its memory boots, and that is logged', async () => {
  const it = node();
  it.parts.checkpoints.supported = true;
  const { record } = await it.start(request({}, { started }));
  expect(it.taken).toEqual([{ snapshotId: 'of-the-build', recordsOrigin: true }]);
  expect(it.happened).toEqual(['remove', 'pool', 'egress', 'give', 'record']);
  expect(record.image.layers).toEqual(['l1']);
  expect(it.logged.map(line => JSON.parse(line) as unknown)).toEqual([
    expect.objectContaining({ level: 'warn', sandboxId: 'a' }),
  ]);
});

test('a waiting sandbox that can’t be used is logged, and another one is started', async () => {
  const it = node({ waiting: true, fails: ['record'] });
  it.parts.checkpoints.supported = true;
  await it.start(request({}, { started }));
  const failed = ['egress', 'thaw', 'give', 'record', 'release', 'remove'];
  expect(it.happened).toEqual([...failed, 'remove', 'pool', 'egress', 'give', 'record']);
  expect(it.logged).toHaveLength(2);
});

test('if the server of the template fails in a waiting sandbox, no other one is started', async () => {
  const it = node({ waiting: true, adoptsRoot: false, startCommand: 'serve' });
  await expect(it.start(request())).rejects.toMatchObject({ code: 'unavailable', detail: 'template_start_failed' });
  expect(it.taken).toHaveLength(1);
  expect(it.happened).toEqual(['egress', 'thaw', 'give', 'release', 'forget', 'remove']);
  expect(it.logged).toEqual([]);
});

test('a start that fails leaves no record', async () => {
  const it = node({ fails: ['record'] });
  await expect(it.start(request())).rejects.toThrow('record failed');
  expect(it.happened).toEqual(['pool', 'egress', 'give', 'record', 'release', 'forget', 'remove']);
  const memory = node();
  await expect(memory.start(request({}, { memorySnapshotId: 'm' }))).rejects.toMatchObject({ code: 'precondition' });
  expect(memory.happened).toEqual(['forget', 'remove']);
});
