import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { rmSync, writeFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { randomHex } from '../../src/base/crypto/secret.ts';
import { agentPort } from '../../src/protocol/agent.ts';
import type { NodeSandbox } from '../../src/protocol/node.ts';
import { requestSandbox, runInSandbox } from '../node/support/run-in-sandbox.ts';
import { startTestNode, type TestNode } from '../node/support/test-node.ts';
import { describeDrivers } from './subjects.ts';

const connectSeconds = 2;

const connect = (address: string, port: number) =>
  `python3 -c 'import socket,sys; s=socket.create_connection(("${address}",${port}),${connectSeconds}); s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n"); print(s.recv(4096))'`;

// Attempts by root in a sandbox on the kernel are in test/attacks/kernel.test.ts.

describeDrivers(subject => {
  let it: TestNode;
  let attacker: NodeSandbox;
  let neighbour: NodeSandbox;
  let host: { port: number; stop(): void; marker: string; markerFile: string };

  beforeAll(async () => {
    it = await startTestNode({ driver: subject.driver });
    [attacker, neighbour] = await Promise.all([
      it.node.protocol.create(it.request()),
      it.node.protocol.create(it.request()),
    ]);
    const marker = `atoll-${randomHex(8)}`;
    const markerFile = `/tmp/atoll-isolation-${process.pid}`;
    writeFileSync(markerFile, marker);
    const server = Bun.serve({ hostname: '0.0.0.0', port: 0, fetch: () => new Response(marker) });
    host = { port: server.port as number, stop: () => void server.stop(true), marker, markerFile };
    await runInSandbox(
      it.node.protocol,
      neighbour.sandboxId,
      `echo ${marker} > /home/user/secret; cd /home/user; nohup python3 -m http.server 8000 > /dev/null 2>&1 &`,
    );
  }, 300_000);

  afterAll(async () => {
    host?.stop();
    if (host) rmSync(host.markerFile);
    await it.dispose();
  });

  const attempt = (command: string, user = 'root') => runInSandbox(it.node.protocol, attacker.sandboxId, command, user);

  describe('root in a sandbox can not', () => {
    test('do more with sudo than root can', async () => {
      expect((await attempt('sudo -n id -u', 'user')).stdout).toBe(subject.cannot('setuid') ? '' : '0\n');
      expect((await attempt('sudo -n mount -t tmpfs none /mnt', 'user')).exitCode).not.toBe(0);
    });

    test('see or signal the host’s processes', async () => {
      const { stdout } = await attempt(
        `ls /proc | grep -cx '${process.pid}'; kill -0 ${process.pid} && echo reached; ps ax | grep -c 'bun test'`,
      );
      expect(stdout).not.toContain('reached');
      expect((await attempt('ps ax -o args=')).stdout).not.toContain('crun');
    });

    test('see the host’s files, by any path or link', async () => {
      const { stdout } = await attempt(
        `cat ${host.markerFile}; cat /proc/1/root${host.markerFile}; ln -s ${host.markerFile} /home/user/link; cat /home/user/link; ln -s /../../../../..${host.markerFile} /home/user/up; cat /home/user/up`,
      );
      expect(stdout).not.toContain(host.marker);
      for (const path of [
        '/home/user/link',
        '/home/user/up',
        `/proc/1/root${host.markerFile}`,
        `/../../../..${host.markerFile}`,
      ]) {
        const answer = await requestSandbox(
          it.node.protocol,
          attacker.sandboxId,
          agentPort,
          'GET',
          `/files?path=${encodeURIComponent(path)}`,
        );
        expect(answer.body.toString()).not.toContain(host.marker);
        expect(answer.status).toBeGreaterThanOrEqual(400);
      }
    });

    test('leave its root by the double chroot', async () => {
      const escape =
        'import os; os.makedirs("/jail",exist_ok=True); f=os.open("/",os.O_RDONLY); os.chroot("/jail"); os.fchdir(f); [os.chdir("..") for _ in range(64)]; os.chroot("."); print(os.listdir("/tmp"))';
      expect((await attempt(`python3 -c '${escape}'`)).stdout).not.toContain(host.marker);
    });

    test('change what another sandbox of the same template sees', async () => {
      expect((await attempt(`echo ${host.marker} > /usr/bin/marker && cat /usr/bin/marker`)).stdout).toContain(
        host.marker,
      );
      expect((await runInSandbox(it.node.protocol, neighbour.sandboxId, 'cat /usr/bin/marker')).exitCode).not.toBe(0);
    });
  });

  describe('a sandbox can not reach', () => {
    const slotAddress = (number: number) =>
      `198.18.${(it.node.installation * 2048 + number) >> 8}.${(it.node.installation * 2048 + number) & 255}`;

    test('another sandbox, by any address that stands for one', async () => {
      expect(
        (
          await runInSandbox(
            it.node.protocol,
            neighbour.sandboxId,
            'sleep 1; python3 -c \'import socket; print(socket.create_connection(("127.0.0.1",8000),2))\'',
          )
        ).exitCode,
      ).toBe(0);
      for (const address of [slotAddress(0), slotAddress(1), '169.254.0.21', '127.0.0.1', '::1']) {
        const { exitCode, stdout } = await attempt(connect(address, 8000));
        expect({ address, exitCode, stdout }).toMatchObject({ exitCode: 1, stdout: '' });
      }
    });

    test('the host, by any of its addresses', async () => {
      const own = Object.values(networkInterfaces())
        .flatMap(list => list ?? [])
        .map(({ address }) => address);
      for (const address of [
        ...own,
        '169.254.0.22',
        '0.0.0.0',
        slotAddress(2000),
        ...own.filter(a => a.includes('.')).map(a => `::ffff:${a}`),
      ]) {
        const { exitCode, stdout } = await attempt(connect(address, host.port));
        expect({ address, exitCode, stdout }).toMatchObject({ exitCode: 1, stdout: '' });
      }
      expect(own.length).toBeGreaterThan(0);
    }, 120_000);

    test('private networks and metadata services', async () => {
      for (const address of [
        '10.0.0.1',
        '172.16.0.1',
        '192.168.0.1',
        '100.64.0.1',
        '169.254.169.254',
        'fd00::1',
        'fe80::1%eth0',
      ]) {
        const { exitCode, stdout } = await attempt(connect(address, 80));
        expect({ address, exitCode, stdout }).toMatchObject({ exitCode: 1, stdout: '' });
      }
    }, 60_000);
  });
});
