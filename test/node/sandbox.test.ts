import { afterAll, beforeAll, expect, test } from 'bun:test';
import { newUuid } from '../../src/base/id.ts';
import { runInSandbox } from './support/run-in-sandbox.ts';
import { startTestNode, type TestNode } from './support/test-node.ts';

let it: TestNode;
beforeAll(async () => (it = await startTestNode()), 300_000);
afterAll(() => it.dispose());

const protocol = () => it.node.protocol;

test('a created sandbox runs commands and is gone after its kill', async () => {
  const sandbox = await protocol().create(it.request());
  expect((await runInSandbox(protocol(), sandbox.sandboxId, 'echo hello; exit 3')).stdout).toBe('hello\n');
  expect((await protocol().list()).map(({ sandboxId }) => sandboxId)).toContain(sandbox.sandboxId);
  await protocol().kill(sandbox);
  expect(await protocol().list()).toEqual([]);
  await expect(protocol().dial(sandbox.sandboxId, 49983)).rejects.toMatchObject({ code: 'not_found' });
});

test('asking twice for one execution starts one sandbox', async () => {
  const request = it.request();
  const [first, second] = await Promise.all([protocol().create(request), protocol().create(request)]);
  expect(second).toEqual(first);
  expect(await protocol().list()).toHaveLength(1);
  await expect(protocol().create({ ...request, executionId: newUuid() })).rejects.toMatchObject({ code: 'conflict' });
  await protocol().kill(first);
});

test('a kill that names another execution leaves the sandbox alone', async () => {
  const sandbox = await protocol().create(it.request());
  await protocol().kill({ sandboxId: sandbox.sandboxId, executionId: newUuid() });
  expect(await protocol().list()).toHaveLength(1);
  await protocol().kill(sandbox);
});

test('a create that names a layer which is not here fails and leaves nothing', async () => {
  const request = it.request();
  const image = { ...request.image, layers: [`sha256:${'0'.repeat(64)}`] };
  await expect(protocol().create({ ...request, image })).rejects.toMatchObject({ code: 'not_found' });
  expect(await protocol().list()).toEqual([]);
});

test('limits on memory, processes and disk hold inside', async () => {
  const sandbox = await protocol().create(it.request());
  const run = (command: string) => runInSandbox(protocol(), sandbox.sandboxId, command);
  expect((await run('python3 -c "bytearray(900 << 20)"')).exitCode).not.toBe(0);
  const full = await run('dd if=/dev/zero of=/home/user/big bs=1M count=800');
  expect(full.stderr).toMatch(/No space left on device|Disk quota exceeded/);
  expect((await run('rm /home/user/big && dd if=/dev/zero of=/home/user/small bs=1M count=50')).exitCode).toBe(0);
  expect(Number((await run("df -m --output=size / | tail -n 1")).stdout)).toBeLessThanOrEqual(512);
  expect(Number((await run('nproc')).stdout)).toBeGreaterThan(0);
  await protocol().kill(sandbox);
});

test('a fork bomb is contained, and ends with its sandbox', async () => {
  const [bomb, bystander] = await Promise.all([protocol().create(it.request()), protocol().create(it.request())]);
  void runInSandbox(protocol(), bomb.sandboxId, 'bomb() { bomb | bomb & }; bomb').catch(() => {}); // cut off by the kill
  await Bun.sleep(1_000); // it must have grown to be worth the name
  expect((await runInSandbox(protocol(), bystander.sandboxId, 'echo alive')).stdout).toBe('alive\n');
  await protocol().kill(bomb);
  await protocol().kill(bystander);
  expect(await protocol().list()).toEqual([]);
});

test('running sandboxes outlive a restart of the node, and keep their state', async () => {
  const sandbox = await protocol().create(it.request());
  await runInSandbox(protocol(), sandbox.sandboxId, 'echo kept > /root/file');
  await it.restart();
  expect(it.node.found).toEqual({ adopted: 1, removed: 0, paused: 0 });
  expect(await protocol().list()).toEqual([sandbox]);
  expect((await runInSandbox(protocol(), sandbox.sandboxId, 'cat /root/file')).stdout).toBe('kept\n');
  await protocol().kill(sandbox);
  expect(await protocol().list()).toEqual([]);
});

test('the end of a sandbox that nobody asked for is reported after it was cleaned up', async () => {
  const sandbox = await protocol().create(it.request());
  const exit = new Promise(resolve => protocol().onExit(resolve));
  // PID 1 of the sandbox ignores signals from inside; the host's kernel does not.
  const [pid] = (await Bun.$`cat ${it.dataDir}/node/sandboxes/${sandbox.sandboxId}/record.json`.json().then(record => [record.pid])) as [number];
  process.kill(pid, 'SIGKILL');
  expect(await exit).toEqual({ sandboxId: sandbox.sandboxId, executionId: sandbox.executionId, reason: 'init_exited' });
  expect(await protocol().list()).toEqual([]);
});
