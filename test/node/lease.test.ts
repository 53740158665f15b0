import { afterAll, beforeAll, expect, test } from 'bun:test';
import { AtollError } from '../../src/base/error.ts';
import { newUuid } from '../../src/base/id.ts';
import { waitFor } from '../support/process.ts';
import { runInSandbox } from './support/run-in-sandbox.ts';
import { startTestNode, type TestNode } from './support/test-node.ts';

// A node of a cluster that loses touch with control during a start: none of the sandbox's processes runs.

let it: TestNode;
let hasLease = true;
beforeAll(async () => {
  const requireLease = () => {
    if (!hasLease) throw new AtollError('unavailable', 'out of touch');
  };
  it = await startTestNode({ memory: true, requireLease });
}, 300_000);
afterAll(() => it?.dispose());

/** Requests made meanwhile fail at their end. */
async function refused(work: () => Promise<unknown>): Promise<void> {
  hasLease = false;
  try {
    await expect(work()).rejects.toThrow('out of touch');
  } finally {
    hasLease = true;
  }
}

/** A sandbox with a program that appends to a file as long as it runs, and a number only in memory. */
async function writing() {
  const sandbox = await it.node.protocol.create(it.request());
  const program = 'while true; do echo "$$" >> /root/runs; sleep 0.05; done';
  await runInSandbox(it.node.protocol, sandbox.sandboxId, `(setsid sh -c '${program}' >/dev/null 2>&1 &)`);
  await waitFor('the program', async () => (await runs(sandbox)).length > 0);
  return sandbox;
}

const runs = async ({ sandboxId }: { sandboxId: string }) =>
  (await runInSandbox(it.node.protocol, sandboxId, 'cat /root/runs')).stdout.split('\n').filter(Boolean);

test('a create that comes to its end without a lease leaves nothing', async () => {
  const request = it.request();
  await refused(() => it.node.protocol.create(request));
  expect(await it.node.protocol.list()).toEqual([]);
  const startCommand = 'touch /root/ran; sleep 100';
  await refused(() => it.node.protocol.create({ ...request, image: { ...request.image, startCommand } }));
  // The same execution may begin later: nothing of it is left.
  const made = await it.node.protocol.create(request);
  expect((await runInSandbox(it.node.protocol, made.sandboxId, 'ls /root/ran')).exitCode).not.toBe(0);
  await it.node.protocol.kill(made);
});

for (const [what, frozen] of [
  ['frozen processes are', true],
  ['the memory on disk is', false],
] as const)
  test(`${what} not let run without a lease, and goes on as it was later`, async () => {
    const sandbox = await writing();
    const paused = await it.node.protocol.pause(sandbox, { memory: true });
    if (!frozen) await it.restart();
    await refused(() => it.resume(paused));
    expect(await it.node.protocol.list()).toEqual([]);
    expect(await it.node.protocol.listPaused()).toMatchObject([{ executionId: paused.executionId, kept: 'memory' }]);
    const again = await it.resume(paused);
    expect(again.from).toBe('memory');
    const before = (await runs(again)).length;
    await waitFor('the program to go on', async () => (await runs(again)).length > before);
    expect(new Set(await runs(again)).size).toBe(1);
    await it.node.protocol.kill(again);
  });

test('nothing boots from its files without a lease, and does later', async () => {
  const sandbox = await writing();
  const paused = await it.node.protocol.pause(sandbox, { memory: false });
  await refused(() => it.resume(paused, { memory: false }));
  expect(await it.node.protocol.listPaused()).toMatchObject([{ executionId: paused.executionId, kept: 'filesystem' }]);
  const again = await it.resume(paused, { memory: false });
  expect((await runs(again)).length).toBeGreaterThan(0);
  await it.node.protocol.kill(again);
});

test('a fork does not begin with memory without a lease', async () => {
  const sandbox = await writing();
  const snapshotId = newUuid();
  const { sandboxId, executionId } = sandbox;
  const { layers } = await it.node.protocol.snapshot({ sandboxId, executionId, snapshotId, memory: true });
  const { image, ...rest } = it.request();
  const request = { ...rest, image: { ...image, layers, memorySnapshotId: snapshotId } };
  await refused(() => it.node.protocol.create(request));
  expect(await it.node.protocol.list()).toHaveLength(1);
  const fork = await it.node.protocol.create(request);
  for (const one of [sandbox, fork]) await it.node.protocol.kill(one);
  await it.node.protocol.deleteSnapshot(snapshotId);
});
