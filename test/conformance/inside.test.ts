import { afterAll, beforeAll, expect, test } from 'bun:test';
import { runInSandbox } from '../node/support/run-in-sandbox.ts';
import { startTestNode, type TestNode } from '../node/support/test-node.ts';
import { describeDrivers } from './subjects.ts';

/** What `ping` does: an echo request through a socket that needs no capability. */
const pingOfLoopback = `import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP); s.settimeout(5)
s.sendto(bytes([8, 0, 0, 0, 0, 1, 0, 1]), ("127.0.0.1", 0)); s.recv(100); print("answered")`;

describeDrivers(({ driver }) => {
  let it: TestNode;
  beforeAll(async () => (it = await startTestNode({ driver })), 300_000);
  afterAll(() => it.dispose());

  test('programs count the processors and the memory of their sandbox', async () => {
    const request = it.request();
    const sandbox = await it.node.protocol.create({
      ...request,
      resources: { ...request.resources, cpuCount: 1, memoryMiB: 300 },
    });
    const run = async (command: string) =>
      (await runInSandbox(it.node.protocol, sandbox.sandboxId, command)).stdout.trim();
    expect(
      await run('nproc; grep -c ^processor /proc/cpuinfo; getconf _NPROCESSORS_ONLN; grep -c "^cpu[0-9]" /proc/stat'),
    ).toBe('1\n1\n1\n1');
    expect(await run("awk '/MemTotal/ {print $2}' /proc/meminfo; free -m | awk '/Swap/ {print $2}'")).toBe(
      `${300 * 1024}\n0`,
    );
    const uptimeSeconds = Number(await run('cut -d. -f1 /proc/uptime'));
    expect(uptimeSeconds).toBeLessThan(600);
    await it.node.protocol.kill(sandbox);
  });

  test('text is UTF-8, anyone serves on any port and pings, and shared memory is half of the memory', async () => {
    const request = it.request();
    const resources = { ...request.resources, memoryMiB: 600 };
    const sandbox = await it.node.protocol.create({ ...request, resources });
    const run = async (command: string) =>
      (await runInSandbox(it.node.protocol, sandbox.sandboxId, command, 'user')).stdout.trim();
    expect(await run('printf "\\303\\244" | wc -m; df -m --output=size /dev/shm | tail -n 1')).toMatch(/^1\s+300$/);
    expect(await run(`python3 -c "import socket; socket.create_server(('0.0.0.0', 80)); print('serves')"`)).toBe(
      'serves',
    );
    expect(await run(`python3 -c '${pingOfLoopback}'`)).toBe('answered');
    await it.node.protocol.kill(sandbox);
  });

  test('anyone pings with the program that base brings', async () => {
    const sandbox = await it.node.protocol.create(it.request());
    for (const user of ['user', 'root'])
      expect([
        user,
        await runInSandbox(it.node.protocol, sandbox.sandboxId, 'ping -c 1 127.0.0.1', user),
      ]).toMatchObject([user, { exitCode: 0, stdout: expect.stringContaining('1 received') }]);
    await it.node.protocol.kill(sandbox);
  });

  test('a sandbox is named by its ID, which resolves', async () => {
    const sandbox = await it.node.protocol.create(it.request());
    const { sandboxId } = sandbox;
    const run = async (command: string) => (await runInSandbox(it.node.protocol, sandboxId, command)).stdout.trim();
    const names = 'hostname; cat /etc/hostname; getent ahostsv4 $(hostname) | head -n 1; grep -c ^127.0.1.1 /etc/hosts';
    expect(await run(names)).toMatch(new RegExp(`^${sandboxId}\n${sandboxId}\n127\\.0\\.1\\.1 .*\n1$`));
    await it.node.protocol.kill(sandbox);
  });

  test('namespaces of one’s own are there or refused in one line that names the driver', async () => {
    const sandbox = await it.node.protocol.create(it.request());
    const run = (command: string) => runInSandbox(it.node.protocol, sandbox.sandboxId, command, 'user');
    const mounts = 'unshare -Urm sh -c \'mount -t tmpfs own /mnt && grep -c " /mnt tmpfs" /proc/mounts\'';
    expect(await run(mounts)).toMatchObject(
      driver === 'gvisor'
        ? { exitCode: 0, stdout: '1\n' }
        : {
            exitCode: 1,
            stdout: '',
            stderr: 'unshare: the driver crun lets sandboxes make no namespaces; the driver gvisor does\n',
          },
    );
    expect(await run('unshare --version')).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining('util-linux'),
      stderr: '',
    });
    await it.node.protocol.kill(sandbox);
  });
});
