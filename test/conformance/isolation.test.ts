import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { rmSync, writeFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { randomHex } from '../../src/base/secret.ts';
import { agentPort } from '../../src/protocol/agent.ts';
import type { NodeSandbox } from '../../src/protocol/node.ts';
import { requestSandbox, runInSandbox } from '../node/support/run-in-sandbox.ts';
import { startTestNode, type TestNode } from '../node/support/test-node.ts';
import { describeDrivers } from './subjects.ts';

/** What a shell says when a program is missing: an attempt that ended so proved nothing. */
const notAttempted = [126, 127];
const connectSeconds = 2;

/** A system call by its number (x86-64), so that no tool has to exist. Ends with 0 only if the kernel carried it out. */
const call = (number: number, ...args: string[]) =>
  `python3 -c 'import ctypes,sys; c=ctypes.CDLL(None,use_errno=True); r=c.syscall(${[number, ...args].join(',')}); sys.exit(0 if r>=0 else 1)'`;
const connect = (address: string, port: number) =>
  `python3 -c 'import socket,sys; s=socket.create_connection(("${address}",${port}),${connectSeconds}); s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n"); print(s.recv(4096))'`;

const attempts: Record<string, string> = {
  'mount a tmpfs': 'mount -t tmpfs none /mnt',
  'mount proc anew': 'mkdir -p /p && mount -t proc proc /p',
  'bind-mount': 'mount --bind /proc/sys /mnt',
  'remount /proc/sys writable': 'mount -o remount,rw /proc/sys',
  'unmount the mask of a proc file': 'umount /proc/keys',
  'mount by the new interface: fsopen': call(430, 'b"tmpfs"', '0'),
  'clone a mount tree: open_tree': call(428, '-100', 'b"/"', '1'),
  'pivot_root': call(155, 'b"/"', 'b"/"'),
  'make a block device': 'mknod /root/disk b 254 0',
  'make a character device': 'mknod /root/mem c 1 1',
  'read the host’s disk': 'head -c 1 /dev/vda || head -c 1 /dev/sda || head -c 1 /dev/nvme0n1',
  'read physical memory': 'head -c 1 /dev/mem || head -c 1 /proc/kcore',
  'read the kernel log': 'dmesg',
  'load a module: init_module': call(175, 'b""', '0', 'b""'),
  'load a module: finit_module': call(313, '0', 'b""', '0'),
  'start another kernel: kexec_load': call(246, '0', '0', '0', '0'),
  'reboot': call(169, '0xfee1dead', '672274793', '0x1234567', '0'),
  'make a user namespace': 'unshare --user true',
  'make a mount namespace': 'unshare --mount true',
  'make a network namespace': 'unshare --net true',
  'make a namespace by clone flags': call(56, '0x10000011', '0', '0', '0', '0'),
  'enter the namespaces of PID 1': 'nsenter --target 1 --mount --pid true',
  'bpf': call(321, '0', '0', '0'),
  'io_uring': call(425, '8', '(ctypes.c_char*256)()'),
  'userfaultfd': call(323, '0'),
  'perf events': call(298, '0', '0', '-1', '-1', '0'),
  'kernel keyring': call(248, 'b"user"', 'b"a"', 'b"b"', '1', '-3'),
  'open by handle': call(304, '-100', '(ctypes.c_char*128)()', '0'),
  'change the clock': 'date --set "2001-01-01"',
  'change the host name': call(170, 'b"x"', '1'),
  'change a kernel setting': 'echo x > /proc/sys/kernel/core_pattern',
  'change a network setting': 'echo 1 > /proc/sys/net/ipv4/ip_forward',
  'trigger a system request': 'echo h > /proc/sysrq-trigger',
  'move to another cgroup': 'for f in /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/*/cgroup.procs; do [ -e $f ] && echo $$ > $f && exit 0; done; exit 1',
  'raise the memory limit': 'for f in /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max; do [ -e $f ] && echo 9999999999 > $f && exit 0; done; exit 1',
  'set a release agent': 'echo /x > /sys/fs/cgroup/memory/release_agent',
  'make a cgroup': 'if [ -d /sys/fs/cgroup/memory ]; then mkdir /sys/fs/cgroup/memory/x; else mkdir /sys/fs/cgroup/x; fi',
  'change the agent': 'touch /.agent/x || touch /.agent/agent || chmod 777 /.agent/agent',
  'configure the network': 'ip link add dummy0 type dummy',
  'change routes': 'ip route replace default via 169.254.0.23 dev eth0 onlink',
  'open a vsock': `python3 -c 'import socket; socket.socket(40, socket.SOCK_STREAM)'`,
  'type into the terminal of another': `python3 -c 'import fcntl,os; m,s=os.openpty(); fcntl.ioctl(s,0x5412,b"x")'`,
  'raise a resource limit': 'ulimit -Hn 99999999',
};

/** What is done to a kernel of the sandbox's own, where it has one, and reaches nobody else. */
const ofOwnKernel = ['read the kernel log', 'make a user namespace', 'make a namespace by clone flags', 'change a network setting'];

describeDrivers(subject => {
  let it: TestNode;
  let attacker: NodeSandbox;
  let neighbour: NodeSandbox;
  let host: { port: number; stop(): void; marker: string; markerFile: string };

  beforeAll(async () => {
    it = await startTestNode({ driver: subject.driver });
    [attacker, neighbour] = await Promise.all([it.node.protocol.create(it.request()), it.node.protocol.create(it.request())]);
    const marker = `atoll-${randomHex(8)}`;
    const markerFile = `/tmp/atoll-isolation-${process.pid}`;
    writeFileSync(markerFile, marker);
    const server = Bun.serve({ hostname: '0.0.0.0', port: 0, fetch: () => new Response(marker) });
    host = { port: server.port as number, stop: () => void server.stop(true), marker, markerFile };
    await runInSandbox(it.node.protocol, neighbour.sandboxId, `echo ${marker} > /home/user/secret; cd /home/user; nohup python3 -m http.server 8000 > /dev/null 2>&1 &`);
  }, 300_000);

  afterAll(async () => {
    host?.stop();
    if (host) rmSync(host.markerFile);
    await it.dispose();
  });

  const attempt = (command: string, user = 'root') => runInSandbox(it.node.protocol, attacker.sandboxId, command, user);

  describe('root in a sandbox can not', () => {
    test.each(Object.entries(attempts))('%s', async (name, command) => {
      const { exitCode, stderr } = await attempt(command);
      expect(notAttempted).not.toContain(exitCode);
      if (subject.driver === 'gvisor' && ofOwnKernel.includes(name)) expect(exitCode).toBe(0);
      else expect({ exitCode, stderr }).not.toMatchObject({ exitCode: 0 });
    });

    test('do more with sudo than root can', async () => {
      expect((await attempt('sudo -n id -u', 'user')).stdout).toBe(subject.cannot('setuid') ? '' : '0\n');
      expect((await attempt('sudo -n mount -t tmpfs none /mnt', 'user')).exitCode).not.toBe(0);
    });

    test('see or signal the host’s processes', async () => {
      const { stdout } = await attempt(`ls /proc | grep -cx '${process.pid}'; kill -0 ${process.pid} && echo reached; ps ax | grep -c 'bun test'`);
      expect(stdout).not.toContain('reached');
      expect((await attempt('ps ax -o args=')).stdout).not.toContain('crun');
    });

    test('see the host’s files, by any path or link', async () => {
      const { stdout } = await attempt(`cat ${host.markerFile}; cat /proc/1/root${host.markerFile}; ln -s ${host.markerFile} /home/user/link; cat /home/user/link; ln -s /../../../../..${host.markerFile} /home/user/up; cat /home/user/up`);
      expect(stdout).not.toContain(host.marker);
      for (const path of ['/home/user/link', '/home/user/up', `/proc/1/root${host.markerFile}`, `/../../../..${host.markerFile}`]) {
        const answer = await requestSandbox(it.node.protocol, attacker.sandboxId, agentPort, 'GET', `/files?path=${encodeURIComponent(path)}`);
        expect(answer.body.toString()).not.toContain(host.marker);
        expect(answer.status).toBeGreaterThanOrEqual(400);
      }
    });

    test('leave its root by the double chroot', async () => {
      const escape = 'import os; os.makedirs("/jail",exist_ok=True); f=os.open("/",os.O_RDONLY); os.chroot("/jail"); os.fchdir(f); [os.chdir("..") for _ in range(64)]; os.chroot("."); print(os.listdir("/tmp"))';
      expect((await attempt(`python3 -c '${escape}'`)).stdout).not.toContain(host.marker);
    });

    test('change what another sandbox of the same template sees', async () => {
      expect((await attempt(`echo ${host.marker} > /usr/bin/marker && cat /usr/bin/marker`)).stdout).toContain(host.marker);
      expect((await runInSandbox(it.node.protocol, neighbour.sandboxId, 'cat /usr/bin/marker')).exitCode).not.toBe(0);
    });
  });

  describe('a sandbox can not reach', () => {
    const slotAddress = (number: number) => `198.18.${(it.node.installation * 2048 + number) >> 8}.${(it.node.installation * 2048 + number) & 255}`;

    test('another sandbox, by any address that stands for one', async () => {
      expect((await runInSandbox(it.node.protocol, neighbour.sandboxId, 'sleep 1; python3 -c \'import socket; print(socket.create_connection(("127.0.0.1",8000),2))\'')).exitCode).toBe(0);
      for (const address of [slotAddress(0), slotAddress(1), '169.254.0.21', '127.0.0.1', '::1']) {
        const { exitCode, stdout } = await attempt(connect(address, 8000));
        expect({ address, exitCode, stdout }).toMatchObject({ exitCode: 1, stdout: '' });
      }
    });

    test('the host, by any of its addresses', async () => {
      const own = Object.values(networkInterfaces()).flatMap(list => list ?? []).map(({ address }) => address);
      for (const address of [...own, '169.254.0.22', '0.0.0.0', slotAddress(2000), ...own.filter(a => a.includes('.')).map(a => `::ffff:${a}`)]) {
        const { exitCode, stdout } = await attempt(connect(address, host.port));
        expect({ address, exitCode, stdout }).toMatchObject({ exitCode: 1, stdout: '' });
      }
      expect(own.length).toBeGreaterThan(0);
    }, 120_000);

    test('private networks and metadata services', async () => {
      for (const address of ['10.0.0.1', '172.16.0.1', '192.168.0.1', '100.64.0.1', '169.254.169.254', 'fd00::1', 'fe80::1%eth0']) {
        const { exitCode, stdout } = await attempt(connect(address, 80));
        expect({ address, exitCode, stdout }).toMatchObject({ exitCode: 1, stdout: '' });
      }
    }, 60_000);
  });
});
