import { afterAll, beforeAll, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { detectCgroups, pidsMaxOf } from '../../src/node/cgroup/cgroup.ts';
import { terminalsMax } from '../../src/node/drivers/crun/config.ts';
import { lowHostLimits } from '../../src/node/host-limits.ts';
import type { NodeSandbox } from '../../src/protocol/node.ts';
import { platformWeight } from '../../src/supervisor/control-groups.ts';
import { runInSandbox } from '../node/support/run-in-sandbox.ts';
import { waitFor } from '../support/process.ts';
import { startTestNode, testResources, type TestNode } from '../node/support/test-node.ts';

// One sandbox takes all it can of what the kernel has for all; the test counts what a second sandbox and the host still
// have. The sandboxes' node is in this process: its event loop is one of the shared things.

const program = readFileSync(join(import.meta.dir, 'support/kernel/take.py'), 'utf8');
const givenBackTries = 50;
const memoryBytes = testResources.memoryMiB << 20;
/** A disk's pace: less than any host manages. */
const writtenPerSecond = 16 << 20;

let it: TestNode;
let greedy: NodeSandbox;
let modest: NodeSandbox;

beforeAll(async () => {
  it = await startTestNode({ diskWriteBytesPerSecond: writtenPerSecond });
  [greedy, modest] = await Promise.all([it.node.protocol.create(it.request()), it.node.protocol.create(it.request())]);
  for (const sandbox of [greedy, modest])
    await run(sandbox, `base64 -d > /take.py <<'END'\n${Buffer.from(program).toString('base64')}\nEND`);
}, 300_000);
afterAll(() => it.dispose(), 120_000);

async function run(sandbox: NodeSandbox, command: string, user = 'root'): Promise<string> {
  const { exitCode, stdout, stderr } = await runInSandbox(it.node.protocol, sandbox.sandboxId, command, user);
  if (exitCode !== 0) throw new Error(`${command.slice(0, 100)}: ${exitCode} ${stderr}`);
  return stdout;
}

/** Starts taking and answers how much it got; it holds that until `letGo`. */
async function take(sandbox: NodeSandbox, what: string, most = 1_000_000): Promise<number> {
  await run(
    sandbox,
    `: > /taken; [ -p /hold ] || mkfifo /hold; (setsid python3 /take.py ${what} ${most} < /hold > /taken 2>/dev/null &) ; (setsid sleep 600 > /hold 2>/dev/null &)`,
  );
  for (;;) {
    const text = await run(sandbox, 'cat /taken');
    if (text.endsWith('\n')) return Number(text);
    await Bun.sleep(100);
  }
}
async function letGo(sandbox: NodeSandbox): Promise<void> {
  await run(sandbox, 'pkill -9 -x python3; pkill -9 -x sleep; true');
  while ((await run(sandbox, 'pgrep -cx "python3|sleep" || true')).trim() !== '0') await Bun.sleep(50);
}

/** How much of it the host's root can get now. */
async function hostTakes(what: string, most: number): Promise<number> {
  const child = Bun.spawn(['python3', '-c', program, what, String(most)], {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'ignore',
  });
  const reader = child.stdout.getReader();
  const { value } = await reader.read();
  await child.stdin.end();
  await child.exited;
  return Number(Buffer.from(value ?? new Uint8Array()).toString());
}

type Row = { what: string; most: number; least: number; modest: number; host?: number };

const own: Row[] = [
  { what: 'inotify', most: 128, least: 100, modest: 100, host: 100 },
  { what: 'queues', most: 256, least: 5, modest: 5, host: 5 },
  { what: 'terminals', most: terminalsMax, least: terminalsMax - 2, modest: 200, host: 200 },
  { what: 'signals', most: 1_000_000, least: 1000, modest: 5000, host: 5000 },
  { what: 'semaphores', most: 32_000, least: 1000, modest: 1000, host: 1000 },
  { what: 'files', most: 65_536, least: 1000, modest: 1000, host: 1000 },
];

test.each(own)(
  '$what: one sandbox takes all of its own, and nobody else has less',
  async ({ what, most, least, modest: modestGets, host = 0 }) => {
    const hostHad = await hostTakes(what, host);
    const taken = await take(greedy, what);
    expect(taken).toBeGreaterThanOrEqual(least);
    expect(taken).toBeLessThanOrEqual(most);
    expect(await take(modest, what, modestGets)).toBe(modestGets);
    // What the first look took may be returned a moment after its process has ended.
    for (let left = givenBackTries; (await hostTakes(what, host)) < hostHad; left--) expect(left).toBeGreaterThan(0);
    await Promise.all([letGo(greedy), letGo(modest)]);
  },
  180_000,
);

test.each(['aio', 'keys', 'loops'])(
  '%s: a sandbox has none, as there is one supply for all',
  async what => {
    expect(await take(greedy, what)).toBe(0);
    await letGo(greedy);
  },
  60_000,
);

test('locks of files: whoever holds many leaves the others theirs', async () => {
  // The kernel neither limits them nor charges them to anybody: SECURITY.md says what that means.
  expect(await take(greedy, 'locks', 50_000)).toBe(50_000);
  expect(await take(modest, 'locks', 10_000)).toBe(10_000);
  expect(await hostTakes('locks', 1000)).toBe(1000);
  await Promise.all([letGo(greedy), letGo(modest)]);
}, 180_000);

test('processes: users stop below the sandbox’s limit, and commands and the neighbour go on', async () => {
  const most = pidsMaxOf(testResources);
  const taken = await take(greedy, 'processes');
  expect(taken).toBeGreaterThan(most / 2);
  expect(taken).toBeLessThanOrEqual(most);
  for (let count = 0; count < 3; count++) expect(await run(greedy, 'echo $(echo here)')).toBe('here\n');
  expect(await run(greedy, 'ps ax | wc -l', 'user')).not.toBe('0\n');
  expect(await take(modest, 'processes', 300)).toBe(300);
  expect(lowHostLimits()).toEqual([]);
  expect(await hostTakes('processes', 300)).toBe(300);
  await Promise.all([letGo(greedy), letGo(modest)]);
}, 180_000);

test('forks without end: the neighbour runs commands, the sandbox too, and a kill ends it', async () => {
  const bombed = await it.node.protocol.create(it.request());
  const bomb = 'import os\nwhile True:\n  try: os.fork()\n  except OSError: pass';
  await run(bombed, `(setsid python3 -c '${bomb}' > /dev/null 2>&1 < /dev/null &)`, 'user');
  // It has all that users may have.
  const most = pidsMaxOf(testResources);
  await waitFor('the sandbox to be full', () => processes(bombed) > most / 2, 30_000);
  for (let count = 0; count < 5; count++) expect(await run(modest, 'echo here')).toBe('here\n');
  expect(await run(bombed, 'echo here')).toBe('here\n');
  await it.node.protocol.kill(bombed);
  expect((await it.node.protocol.list()).some(({ sandboxId }) => sandboxId === bombed.sandboxId)).toBe(false);
}, 120_000);

test('memory: what one sandbox wants beyond its own ends there, and its agent stays', async () => {
  const hog = `python3 -c 'x=[]\nwhile True: x.append(bytearray(1<<20))'`;
  expect((await runInSandbox(it.node.protocol, greedy.sandboxId, hog)).exitCode).not.toBe(0);
  expect(await run(greedy, 'echo here')).toBe('here\n');
  expect(usage(greedy)).toBeLessThanOrEqual(memoryBytes);
  expect(await run(modest, `python3 -c 'print(len(bytearray(300<<20)))'`)).toBe(`${300 << 20}\n`);
}, 120_000);

test('files of shared layers in memory: they count for who read them, and give way', async () => {
  await run(
    greedy,
    'find /usr -xdev -type f -exec cat {} + > /dev/null; head -c 400M /dev/zero > /fill; cat /fill > /dev/null',
  );
  expect(usage(greedy)).toBeLessThanOrEqual(memoryBytes);
  expect(usage(modest)).toBeLessThan(memoryBytes / 2);
  expect(await run(greedy, `python3 -c 'print(len(bytearray(200<<20)))'; rm /fill`)).toBe(`${200 << 20}\n`);
  expect(await run(modest, 'python3 -c "print(1)"')).toBe('1\n');
}, 120_000);

test('processor time: fifty busy processes have no more of it than two', async () => {
  const busy = (count: number) =>
    `for n in $(seq ${count}); do (setsid timeout 40 python3 -c 'while True: pass' > /dev/null 2>&1 &); done`;
  await Promise.all([run(greedy, busy(50)), run(modest, busy(2))]);
  await waitFor('all of them to compute', () => processes(greedy) > 50 && processes(modest) > 2);
  const window = async () => {
    const before = [cpu(greedy), cpu(modest)] as const;
    // A window in which both compute: their shares of it are compared.
    await Bun.sleep(4000);
    return [cpu(greedy) - before[0], cpu(modest) - before[1]] as const;
  };
  // Others on the machine may hold one of its processors for one whole measurement; but fifty sandboxes would not get
  // so little in each of them.
  let [many, two] = await window();
  for (let left = 2; left > 0 && two <= many / 3; left--) [many, two] = await window();
  await Promise.all([letGo(greedy), letGo(modest)]);
  expect(two).toBeGreaterThan(many / 3);
  // All of them together have a tenth of the platform's processes' share: their weight says so.
  expect(weightOfAll()).toBeLessThanOrEqual(platformWeight.v1 / 10);
}, 60_000);

test('processor time: who computes on and on comes after the others, and beside them again when it has stopped', async () => {
  const weights = () => [greedy, modest].map(sandbox => weightIn(groupOf('cpu', sandbox)));
  await run(greedy, `(setsid timeout 40 python3 -c 'while True: pass' > /dev/null 2>&1 &)`);
  await waitFor('it to come after the other one', () => weights()[0]! * 10 < weights()[1]!);
  expect(await run(greedy, 'echo it has its turn')).toBe('it has its turn\n');
  await letGo(greedy);
  await waitFor('it to be beside the other one', () => weights()[0] === weights()[1]);
}, 60_000);

test('writes to a disk: on and on they have a pace, for which no pause waits, and which goes with the disk', async () => {
  const limited = () => detectCgroups().limitedDevices(`/atoll${it.node.installation}`);
  const writer = await it.node.protocol.create(it.request());
  const before = new Set(limited());
  const another = () => limited().filter(device => !before.has(device));
  await run(writer, 'echo kept > /kept');
  await run(
    writer,
    // What is removed before it was written out is no write to the disk.
    '(setsid sh -c "while :; do head -c 300M /dev/zero > /fill; sync /fill; rm /fill; done" > /dev/null 2>&1 < /dev/null &)',
  );
  await waitFor('its disk to have a pace', () => another().length === 1, 60_000);
  expect(await run(writer, 'cat /kept')).toBe('kept\n');
  expect(await run(modest, 'head -c 100M /dev/zero > /fill; rm /fill; echo here')).toBe('here\n');
  await it.node.protocol.pause(writer, { memory: false });
  await waitFor('the device to have none', () => another().length === 0);
  const resumed = await it.resume(writer, { memory: false });
  expect(await run(resumed, 'cat /kept')).toBe('kept\n');
  await it.node.protocol.kill(resumed);
}, 120_000);

test('what is left in /run: removed while the event loop and others go on', async () => {
  const messy = await it.node.protocol.create(it.request());
  await run(
    messy,
    `python3 -c 'import os\nfor d in range(20):\n  os.mkdir(f"/run/d{d}")\n  for n in range(1000): open(f"/run/d{d}/{n}","w").close()'`,
  );
  await it.node.protocol.pause(messy, { memory: false });
  const began = process.cpuUsage();
  await it.node.protocol.resume({
    sandboxId: messy.sandboxId,
    executionId: messy.executionId,
    nextExecutionId: crypto.randomUUID(),
    memory: false,
    network: { internetAccess: true },
    envVars: {},
    accessToken: null,
  });
  const { user, system } = process.cpuUsage(began);
  // The platform itself took 40 µs for each of the files.
  expect((user + system) / 1000).toBeLessThan(700);
  expect((await runInSandbox(it.node.protocol, messy.sandboxId, 'ls /run/d0')).exitCode).not.toBe(0);
  expect(await run(modest, 'echo here')).toBe('here\n');
  await it.node.protocol.kill(
    (await it.node.protocol.list()).find(({ sandboxId }) => sandboxId === messy.sandboxId) ?? messy,
  );
}, 120_000);

const isUnified = await Bun.file('/sys/fs/cgroup/cgroup.controllers').exists();
const groupOf = (controller: string, { sandboxId }: NodeSandbox) => {
  const { slot } = JSON.parse(readFileSync(join(it.dataDir, 'node/sandboxes', sandboxId, 'record.json'), 'utf8')) as {
    slot: number;
  };
  return join('/sys/fs/cgroup', isUnified ? '' : controller, `atoll${it.node.installation}/s${slot}`);
};

/** Bytes of memory that a sandbox uses. */
function usage(sandbox: NodeSandbox): number {
  return Number(
    readFileSync(join(groupOf('memory', sandbox), isUnified ? 'memory.current' : 'memory.usage_in_bytes'), 'utf8'),
  );
}

/** Processes and threads that it has. */
const processes = (sandbox: NodeSandbox) =>
  Number(readFileSync(join(groupOf('pids', sandbox), 'pids.current'), 'utf8'));

/** Processor time that it has used, microseconds. */
function cpu(sandbox: NodeSandbox): number {
  if (!isUnified) return Number(readFileSync(join(groupOf('cpuacct', sandbox), 'cpuacct.usage'), 'utf8')) / 1000;
  return Number(/^usage_usec (\d+)/m.exec(readFileSync(join(groupOf('cpu', sandbox), 'cpu.stat'), 'utf8'))?.[1]);
}

const weightOfAll = () => weightIn(join('/sys/fs/cgroup', isUnified ? '' : 'cpu', `atoll${it.node.installation}`));

/** In the numbers of version 1, in which a process without a group has 1024. */
function weightIn(group: string): number {
  return isUnified
    ? Number(readFileSync(join(group, 'cpu.weight'), 'utf8')) * 10.24
    : Number(readFileSync(join(group, 'cpu.shares'), 'utf8'));
}
