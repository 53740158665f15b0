import { afterAll, beforeAll, expect, test } from 'bun:test';
import { existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { detectCgroups } from '../../src/node/cgroup/cgroup.ts';
import type { ExecutionRef } from '../../src/protocol/node.ts';
import { waitFor } from '../support/process.ts';
import { runInSandbox } from './support/run-in-sandbox.ts';
import { startTestNode, testResources, type TestNode } from './support/test-node.ts';

// Standby sandboxes already have the root that creates ask for most often. Whatever they have, a create gets what it
// asked for.
const poolSize = 3;
const cgroups = detectCgroups();
let it: TestNode;
let marked: string[];

beforeAll(async () => {
  it = await startTestNode({ poolSize });
  const tree = mkdtempSync(join(tmpdir(), 'atoll-layer-'));
  writeFileSync(join(tree, 'mark'), 'of the other template\n');
  marked = [it.base, await it.node.layers.pack(tree)];
  rmSync(tree, { recursive: true });
}, 120_000);
afterAll(() => it?.dispose());

const create = (layers: string[]) => {
  const { image, ...request } = it.request();
  return it.node.protocol.create({ ...request, image: { ...image, layers } });
};
const kill = ({ sandboxId, executionId }: ExecutionRef) => it.node.protocol.kill({ sandboxId, executionId });

/** The root of each standby sandbox, while nothing else runs on the node. */
function roots(): string[] {
  const parent = `/atoll${it.node.installation}`;
  return cgroups.list(parent).flatMap(slot => {
    const [pid] = cgroups.processes(`${parent}/${slot}`);
    if (pid === undefined) return [];
    const [rootMount = ''] = readFileSync(`/proc/${pid}/mountinfo`, 'utf8')
      .split('\n')
      .filter(line => line.split(' ')[4] === '/');
    if (!rootMount.includes(' - overlay ')) return ['none'];
    return [existsSync(`/proc/${pid}/root/mark`) ? 'marked' : 'base'];
  });
}
const rootsBecome = (wanted: string[]) =>
  waitFor(`the roots of standby sandboxes to be ${wanted.join()}`, () =>
    Bun.deepEquals(roots().toSorted(), wanted.toSorted()),
  );
const poolIsFull = () =>
  waitFor('the pool to be full', async () => (await it.node.protocol.usage()).pool?.ready === poolSize);

async function createAndKill(layers: string[], times: number): Promise<void> {
  for (let left = times; left > 0; left--) {
    await poolIsFull();
    await kill(await create(layers));
  }
}

/** Pipes and sockets of a process; none if it has ended, or is none that this test may examine. */
function channelsOf(pid: number): string[] {
  try {
    const targets = readdirSync(`/proc/${pid}/fd`).map(fd => readlinkSync(`/proc/${pid}/fd/${fd}`));
    return targets.filter(target => /^(?:pipe|socket):/.test(target));
  } catch {
    return [];
  }
}

test('a standby sandbox shares no pipe and no socket with the host: its sign that it serves was the last thing', async () => {
  await poolIsFull();
  const parent = `/atoll${it.node.installation}`;
  const inside = cgroups.list(parent).flatMap(slot => cgroups.processes(`${parent}/${slot}`));
  expect(inside.length).toBeGreaterThanOrEqual(poolSize * 2);
  const own = new Set(inside.flatMap(channelsOf));
  expect(own.size).toBeGreaterThan(poolSize);
  const others = readdirSync('/proc').flatMap(name => {
    const pid = Number(name);
    return Number.isNaN(pid) || inside.includes(pid) ? [] : channelsOf(pid);
  });
  expect(others.filter(channel => own.has(channel))).toEqual([]);
});

test('the pool gets the usual root, but for one, and everybody gets the root asked for', async () => {
  await createAndKill([it.base], poolSize * 2);
  await rootsBecome(['base', 'base', 'none']);
  const created = [];
  for (const layers of [marked, [it.base], marked, [it.base]]) {
    const sandbox = await create(layers);
    created.push(sandbox);
    const { stdout } = await runInSandbox(
      it.node.protocol,
      sandbox.sandboxId,
      'cat /mark; hostname; cat /etc/hostname',
    );
    const own = `${sandbox.sandboxId}\n${sandbox.sandboxId}\n`;
    expect(stdout).toBe(layers === marked ? `of the other template\n${own}` : own);
  }
  await Promise.all(created.map(kill));
}, 120_000);

test('another usual root takes its place, and a size that the pool does not have gets a sandbox too', async () => {
  await createAndKill(marked, poolSize * 2);
  await rootsBecome(['marked', 'marked', 'none']);
  const larger = { ...testResources, memoryMiB: testResources.memoryMiB * 2 };
  const sandbox = await it.node.protocol.create({ ...it.request(), resources: larger });
  const { stdout } = await runInSandbox(it.node.protocol, sandbox.sandboxId, 'ls /mark; df -B1M /dev/shm | tail -1');
  expect(stdout).toMatch(new RegExp(`^\\S+ +${larger.memoryMiB / 2} `));
  await kill(sandbox);
}, 120_000);

test('one that dies with its root is replaced', async () => {
  await rootsBecome(['marked', 'marked', 'none']);
  const parent = `/atoll${it.node.installation}`;
  const slots = cgroups.list(parent);
  for (const slot of slots) cgroups.kill(`${parent}/${slot}`);
  await waitFor('those that died to be gone', () => cgroups.list(parent).every(slot => !slots.includes(slot)));
  await poolIsFull();
  expect(roots()).toHaveLength(poolSize);
}, 60_000);

test('a layer that goes is kept by no standby sandbox, and a root that can’t be had stops nobody', async () => {
  await createAndKill(marked, poolSize * 2);
  await rootsBecome(['marked', 'marked', 'none']);
  const [, top = ''] = marked;
  await it.node.layers.remove(top);
  expect(roots()).not.toContain('marked');
  await rootsBecome(['none', 'none', 'none']);
  await createAndKill([it.base], poolSize * 2);
  await rootsBecome(['base', 'base', 'none']);
  await poolIsFull();
}, 120_000);

// The last one, because the pool stays larger afterwards.
test('creates that come together and find too few find as many the next time', async () => {
  await poolIsFull();
  const together = poolSize * 3;
  const pool = async () => (await it.node.protocol.usage()).pool;
  const burst = async () => {
    const before = await pool();
    const created = await Promise.all(Array.from({ length: together }, () => create([it.base])));
    const after = await pool();
    for (const { sandboxId } of created)
      expect((await runInSandbox(it.node.protocol, sandboxId, 'hostname')).stdout).toBe(`${sandboxId}\n`);
    await Promise.all(created.map(kill));
    return { hits: (after?.hits ?? 0) - (before?.hits ?? 0), misses: (after?.misses ?? 0) - (before?.misses ?? 0) };
  };
  expect((await burst()).misses).toBeGreaterThan(0);
  await waitFor('the pool to have grown', async () => {
    const now = await pool();
    return now !== undefined && now.size > poolSize && now.ready === now.size;
  });
  const again = await burst();
  expect(again.hits).toBeGreaterThan(poolSize);
  expect(again.hits + again.misses).toBe(together);
}, 120_000);
