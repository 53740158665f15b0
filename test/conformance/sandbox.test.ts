import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newUuid } from '../../src/base/id.ts';
import { runInSandbox } from '../node/support/run-in-sandbox.ts';
import { startTestNode, type TestNode } from '../node/support/test-node.ts';
import type { NodeProtocol, SandboxIncident } from '../../src/protocol/node.ts';
import { describeDrivers } from './subjects.ts';

describeDrivers(subject => {
  let it: TestNode;
  beforeAll(async () => (it = await startTestNode({ driver: subject.driver })), 300_000);
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

  test.each([
    ['.agent', 'a link'],
    ['dev', 'a file'],
    ['proc', 'a link'],
    ['sys', 'a file'],
  ])('files with /%s as %s are refused as what they are, and nothing of the sandbox is left', async (name, kind) => {
    const tree = mkdtempSync(join(tmpdir(), 'atoll-taken-'));
    if (kind === 'a link') symlinkSync('etc', join(tree, name));
    else writeFileSync(join(tree, name), '');
    const layer = await it.node.layers.pack(tree);
    rmSync(tree, { recursive: true });
    const request = it.request();
    const image = { ...request.image, layers: [it.base, layer] };
    await expect(protocol().create({ ...request, image })).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringContaining(`/${name} of the template is a link or a file`),
    });
    expect(await protocol().list()).toEqual([]);
  });

  const eatMemory = 'python3 -c "bytearray(900 << 20)"';

  if (subject.cannot('outOfMemory')) {
    test('a program that takes too much memory ends its sandbox, and no other', async () => {
      const [sandbox, bystander] = await Promise.all([
        protocol().create(it.request()),
        protocol().create(it.request()),
      ]);
      const exit = nextExit(protocol());
      await expect(runInSandbox(protocol(), sandbox.sandboxId, eatMemory)).rejects.toThrow(
        'without the end of the process',
      );
      expect(await exit).toEqual({
        sandboxId: sandbox.sandboxId,
        executionId: sandbox.executionId,
        reason: 'out_of_memory',
      });
      expect((await runInSandbox(protocol(), bystander.sandboxId, 'echo alive')).stdout).toBe('alive\n');
      await protocol().kill(bystander);
    });
  } else {
    test('a program that takes too much memory ends, and its sandbox does not', async () => {
      const sandbox = await protocol().create(it.request());
      expect((await runInSandbox(protocol(), sandbox.sandboxId, eatMemory)).exitCode).not.toBe(0);
      expect((await runInSandbox(protocol(), sandbox.sandboxId, 'echo alive')).stdout).toBe('alive\n');
      await protocol().kill(sandbox);
    });
  }

  test('limits on disk, memory and processors hold, and are seen inside', async () => {
    const sandbox = await protocol().create(it.request());
    const run = (command: string) => runInSandbox(protocol(), sandbox.sandboxId, command);
    const full = await run('dd if=/dev/zero of=/home/user/big bs=1M count=800');
    expect(full.stderr).toMatch(/No space left on device|Disk quota exceeded/);
    expect((await run('rm /home/user/big && dd if=/dev/zero of=/home/user/small bs=1M count=50')).exitCode).toBe(0);
    expect(Number((await run('df -m --output=size / | tail -n 1')).stdout)).toBeLessThanOrEqual(512);
    expect(Number((await run('nproc')).stdout)).toBeGreaterThan(0);
    await protocol().kill(sandbox);
  });

  test('a fork bomb is contained, and ends with its sandbox', async () => {
    const [bomb, bystander] = await Promise.all([protocol().create(it.request()), protocol().create(it.request())]);
    void runInSandbox(protocol(), bomb.sandboxId, 'bomb() { bomb | bomb & }; bomb').catch(() => {}); // cut off by the kill
    // It has reached its bound once nobody can start a process beside it any more.
    while ((await runInSandbox(protocol(), bomb.sandboxId, 'true && (true)').catch(() => null))?.exitCode === 0);
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
    const exit = nextExit(protocol());
    // PID 1 of the sandbox ignores signals from inside; the host's kernel does not.
    const [pid] = (await Bun.$`cat ${it.dataDir}/node/sandboxes/${sandbox.sandboxId}/record.json`
      .json()
      .then(record => [record.pid])) as [number];
    process.kill(pid, 'SIGKILL');
    expect(await exit).toEqual({
      sandboxId: sandbox.sandboxId,
      executionId: sandbox.executionId,
      reason: 'init_exited',
    });
    expect(await protocol().list()).toEqual([]);
  });

  test('a volume has what another sandbox has written, with its owners, also after a pause', async () => {
    const volumeId = newUuid();
    await protocol().volumes.create(volumeId, 64);
    const volumes = [{ volumeId, path: '/mnt/deep/data' }];
    const [one, two] = await Promise.all([
      protocol().create(it.request({ volumes })),
      protocol().create(it.request({ volumes })),
    ]);
    await runInSandbox(protocol(), one.sandboxId, 'echo shared > /mnt/deep/data/file; chown user /mnt/deep/data/file');
    const look = async (sandboxId: string) =>
      (await runInSandbox(protocol(), sandboxId, 'cat /mnt/deep/data/file; stat -c %U /mnt/deep/data/file')).stdout;
    expect(await look(two.sandboxId)).toBe('shared\nuser\n');
    await protocol().kill(two);
    const paused = await protocol().pause(one, { memory: false });
    const resumed = await it.resume(paused, { memory: false });
    expect(await look(one.sandboxId)).toBe('shared\nuser\n');
    await protocol().kill(resumed);
  });
});

/** The first sandbox that ends by itself from now on. */
async function nextExit(node: NodeProtocol): Promise<SandboxIncident | undefined> {
  const { next } = await node.incidents(null, 0);
  return (await node.incidents(next, 60_000)).incidents[0];
}
