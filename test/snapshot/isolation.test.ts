import { afterAll, beforeAll, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { dial } from '../../src/node/network/dial.ts';
import { sandboxMounts } from '../../src/node/snapshot/mounts.ts';
import { againstTheAgent, withAgent } from '../attacks/support/kernel/attempts.ts';
import { waitFor } from '../support/process.ts';
import { resources, startMachine, type Machine, type TestSandbox } from './support/machine.ts';

let machine: Machine;
let sandbox: TestSandbox;

beforeAll(async () => {
  machine = await startMachine();
  sandbox = await machine.start(0);
}, 120_000);

afterAll(async () => {
  await machine.kill(sandbox);
  await machine[Symbol.asyncDispose]();
}, 60_000);

/** What a program in the sandbox finds out about its confinement; none of it may depend on the slot. */
const confinement = `
grep -E '^(Seccomp|Cap|NoNewPrivs|Uid|Gid|Groups)' /proc/self/status
grep -E '^(Seccomp|Cap|NoNewPrivs|Uid|Gid|Groups)' /proc/1/status
cat /proc/self/cgroup /proc/1/limits /proc/1/oom_score_adj
cat /proc/sys/net/mptcp/enabled 2>/dev/null || echo no mptcp
cat /proc/sys/net/ipv4/ping_group_range /proc/sys/kernel/random/boot_id /proc/sys/kernel/hostname
ls -l /proc/self/ns | sed 's/.*-> //; s/\\[.*//'
find /sys/fs/cgroup -name memory.limit_in_bytes -o -name cpu.cfs_quota_us -o -name pids.max -o -name memory.max -o -name cpu.max | sort | xargs tail -n 1
ip -4 -o addr | sed 's/if[0-9]*//; s/\\\\.*//'
ip route
for path in /proc/kmsg /proc/keys /proc/sys/kernel/core_pattern /.agent/init /dev/mem; do cat $path 2>&1 > /dev/null | sed 's/cat: //'; done
for what in 'touch /proc/sys/x' 'touch /.agent/x' 'touch /sys/x' 'mount -t tmpfs x /mnt' 'umount /proc' 'mknod /root/n c 1 3' 'unshare -U true' 'dmesg' 'hostname other' 'ip link set eth0 down'; do
  $what > /dev/null 2>&1; echo "$what: $?"
done
ls /proc/acpi /sys/firmware /sys/kernel | wc -l
`;

test('a restored sandbox is confined as it was before', async () => {
  // Within one checkpoint, a key names a mount; the order of mounts, which it reveals, changes after each.
  const mounts = () =>
    sandboxMounts(readFileSync(`/proc/${sandbox.pid}/mountinfo`, 'utf8'))
      .map(({ point, external, restrictions }) => ({ point, external, restrictions }))
      .sort((a, b) => (a.point < b.point ? -1 : 1));
  const before = { text: await sandbox.run(confinement), mounts: mounts() };
  expect(before.text).toContain('Seccomp:\t2');
  expect(before.text).toContain('unshare -U true: 1');
  expect(before.text).toMatch(/^(0|no mptcp)$/m);
  expect(before.mounts.length).toBeGreaterThan(20);
  sandbox = await machine.cycle(sandbox, 'confined-1');
  sandbox = await machine.cycle(sandbox, 'confined-2');
  expect((await sandbox.run(confinement)).split('\n')).toEqual(before.text.split('\n'));
  expect(mounts()).toEqual(before.mounts);
}, 120_000);

test('root reads no token of agent and init that were restored, as of new ones', async () => {
  sandbox = await machine.cycle(sandbox, 'hidden');
  const successes: string[] = [];
  for (const [name, command] of Object.entries(againstTheAgent)) {
    const outcome = await sandbox.run(`(${withAgent(command)}) > /dev/null 2>&1; echo $?`);
    // 126 and 127: a program for it is missing.
    if (['0', '126', '127'].includes(outcome.trim())) successes.push(`${name}: ${outcome}`);
  }
  expect(successes).toEqual([]);
}, 120_000);

test('the limit on memory holds for what was restored', async () => {
  await sandbox.launch(
    'holder',
    '#!/usr/bin/env python3\nimport time\nkept = bytearray(b"x") * (300 << 20)\nopen("/root/held", "w").close()\ntime.sleep(1000)\n',
  );
  await waitFor('the memory', () => sandbox.run('ls /root/held').catch(() => undefined));
  sandbox = await machine.cycle(sandbox, 'limited');
  // Restored memory counts: beside it, the rest up to the limit is not available.
  const rest = (resources.memoryMiB - 200) * 2 ** 20;
  const wanted = `python3 -c 'x = bytearray(b"x") * ${rest}' ; echo $?`;
  expect((await sandbox.run(wanted)).trim().split('\n').at(-1)).toBe('137');
}, 120_000);

test('connections from outside end with the pause, and the same port serves after it', async () => {
  await sandbox.launch(
    'echo',
    `#!/usr/bin/env python3
import socket, threading
def serve(connection):
    while data := connection.recv(100): connection.send(data)
    open('/root/ends', 'a').write('end\\n')
listener = socket.create_server(('127.0.0.1', 7000))
while True: threading.Thread(target=serve, args=listener.accept()[:1], daemon=True).start()
`,
  );
  const open = async () =>
    connectFd(await waitFor('the server', () => dial(sandbox.namespace, 7000).catch(() => undefined)));
  const first = await open();
  expect(await first.say('before')).toBe('before');
  sandbox = await machine.cycle(sandbox, 'connected');
  await first.ended;
  await waitFor('the end inside', async () => (await sandbox.run('cat /root/ends 2>/dev/null || true')) === 'end\n');
  const second = await open();
  expect(await second.say('after')).toBe('after');
  second.close();
}, 60_000);

/** A client on a connected socket. */
async function connectFd(fd: number) {
  const ended = Promise.withResolvers<void>();
  let answer = Promise.withResolvers<string>();
  const socket = await Bun.connect({
    fd,
    socket: {
      data: (_: unknown, bytes: Buffer) => answer.resolve(bytes.toString()),
      close: () => ended.resolve(),
      error: () => ended.resolve(),
    },
  } as unknown as Parameters<typeof Bun.connect>[0]);
  return {
    ended: ended.promise,
    close: () => socket.terminate(),
    say(text: string): Promise<string> {
      answer = Promise.withResolvers<string>();
      socket.write(text);
      return answer.promise;
    },
  };
}
