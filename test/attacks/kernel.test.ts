import { afterAll, beforeAll, expect } from 'bun:test';
import { join } from 'node:path';
import type { NodeSandbox } from '../../src/protocol/node.ts';
import { describeDrivers } from '../conformance/subjects.ts';
import { runInSandbox } from '../node/support/run-in-sandbox.ts';
import { startTestNode, type TestNode } from '../node/support/test-node.ts';
import {
  againstTheAgent,
  attempts,
  callsOfTheHost,
  hiddenFiles,
  ofOwnKernel,
  settings,
  sockets,
  withAgent,
} from './support/kernel/attempts.ts';
import { attackWall, type Attack } from './support/wall.ts';

/** Exit codes of a shell for a missing program: an attempt that ends so proved nothing. */
const notAttempted = [126, 127];

describeDrivers(subject => {
  let it: TestNode;
  let attacker: NodeSandbox;
  let neighbour: NodeSandbox;

  beforeAll(async () => {
    it = await startTestNode({ driver: subject.driver });
    [attacker, neighbour] = await Promise.all([
      it.node.protocol.create(it.request()),
      it.node.protocol.create(it.request()),
    ]);
  }, 300_000);
  afterAll(() => it.dispose(), 120_000);

  const root = (command: string, user = 'root') => runInSandbox(it.node.protocol, attacker.sandboxId, command, user);
  const refused =
    (command: string): (() => Promise<void>) =>
    async () => {
      const { exitCode, stderr } = await root(command);
      expect(notAttempted).not.toContain(exitCode);
      expect({ exitCode, stderr }).not.toMatchObject({ exitCode: 0 });
    };
  const named = (what: string, table: Record<string, string>): Attack[] =>
    Object.entries(table).map(([name, command]) => [`${what}: ${name}`, refused(command)]);

  const onAnyKernel: Attack[] = Object.entries(attempts).map(([name, command]) => [
    `root: ${name}`,
    async () => {
      if (subject.driver === 'crun' || !ofOwnKernel.includes(name)) return refused(command)();
      // It may do so to its own kernel; the sandbox must still answer.
      await root(command);
      expect((await root('echo here')).stdout).toBe('here\n');
    },
  ]);

  if (subject.driver === 'gvisor') return attackWall({ name: 'kernel, gVisor', atLeast: 55, every: 4 }, onAnyKernel);

  const onTheHosts: Attack[] = [
    ...named('call', callsOfTheHost),
    ...named(
      'socket',
      Object.fromEntries(
        Object.entries(sockets).map(([name, args]) => [
          name,
          `python3 -c 'import ctypes,sys; sys.exit(0 if ctypes.CDLL(None).socket(${args.join(',')})>=0 else 1)'`,
        ]),
      ),
    ),
    ...named(
      'pair',
      Object.fromEntries(
        ['TIPC 30', 'RDS 21', 'ALG 38', 'PACKET 17', 'NETLINK 16 9'].map(text => {
          const [name = '', family, protocol = 0] = text.split(' ');
          return [
            name,
            `python3 -c 'import ctypes,sys; sys.exit(0 if ctypes.CDLL(None).socketpair(${family},5,${protocol},(ctypes.c_int*2)())>=0 else 1)'`,
          ];
        }),
      ),
    ),
    ...hiddenFiles.map((path): Attack => [
      `read: ${path}`,
      async () =>
        expect(
          (
            await root(`if [ -d ${path} ]; then ls -A ${path}; else head -c 100 ${path}; fi 2>/dev/null; true`)
          ).stdout.replaceAll('\0', ''),
        ).toBe(''),
    ]),
    ...settings.map((path): Attack => [
      `write: ${path}`,
      async () => {
        expect((await root(`[ -e ${path} ] && echo 1 > ${path} && echo written`)).stdout).toBe('');
        expect((await root(`chmod 777 ${path} && echo changed`)).stdout).toBe('');
      },
    ]),
    ...named(
      'agent',
      Object.fromEntries(Object.entries(againstTheAgent).map(([name, command]) => [name, withAgent(command)])),
    ),
    ...theWhole(),
  ];
  attackWall({ name: 'kernel', atLeast: process.arch === 'x64' ? 240 : 232, every: 3 }, [
    ...onAnyKernel,
    ...onTheHosts,
  ]);

  /** Attempts that take more than one command, or whose exit code does not suffice to judge them. */
  function theWhole(): Attack[] {
    const nowhere =
      (command: string, ...words: (() => string)[]) =>
      async () => {
        const { stdout } = await root(command);
        expect(stdout.length).toBeGreaterThan(0);
        for (const word of words) expect(stdout).not.toContain(word());
      };
    const neighbourId = () => neighbour.sandboxId;
    const dataDir = () => it.dataDir;
    const processes = 'for d in /proc/[0-9]*; do cat $d/cmdline $d/comm | tr "\\0" " "; done; echo end';
    return [
      [
        'names: mounts tell no ID and no directory of the host',
        nowhere(
          'cat /proc/self/mountinfo /proc/mounts /proc/self/mountstats',
          neighbourId,
          () => attacker.sandboxId,
          dataDir,
          () => '/var/lib/atoll',
          () => '/tmp/',
        ),
      ],
      [
        'names: nothing in /sys tells an ID or a directory of the host',
        nowhere('find /sys -xdev -type f -exec cat {} + 2>/dev/null; find /sys; echo end', neighbourId, dataDir),
      ],
      [
        'names: no environment tells the neighbour',
        nowhere('cat /proc/*/environ 2>/dev/null; echo end', neighbourId, dataDir),
      ],
      [
        'names: processes are its own',
        nowhere(
          processes,
          neighbourId,
          dataDir,
          () => 'crun',
          () => 'bun test',
        ),
      ],
      [
        'names: sockets and locks are its own',
        nowhere('cat /proc/net/unix /proc/locks /proc/net/netlink; echo end', neighbourId, dataDir),
      ],
      [
        'names: control groups are not told by their place on the host',
        nowhere('cat /proc/self/cgroup', () => `atoll${it.node.installation}`),
      ],
      [
        'namespaces: the user namespace was made by an ID of the sandbox’s own',
        async () => expect(await ownerOf(it, attacker)).toBeGreaterThan(0),
      ],
      [
        'namespaces: two sandboxes’ were made by different ones',
        async () => expect(await ownerOf(it, attacker)).not.toBe(await ownerOf(it, neighbour)),
      ],
      [
        'core files: the limit stays whatever is set',
        async () => {
          const { stdout } = await root(
            `python3 -c 'import resource as r; r.setrlimit(r.RLIMIT_CORE,(0,0)); print(r.getrlimit(r.RLIMIT_CORE))'; ulimit -c 0; ulimit -c unlimited; python3 -c 'import resource as r; print(r.getrlimit(r.RLIMIT_CORE))'`,
          );
          expect(stdout).toBe('(1, 1)\n(1, 1)\n');
        },
      ],
      [
        'capabilities: those of root are twelve, and no more by any program',
        async () => {
          expect(
            (await root('grep -h Cap /proc/self/status | sort -u; sudo -n grep CapBnd /proc/self/status')).stdout,
          ).not.toMatch(/(?!00000000800425fb|0{16})[0-9a-f]{16}/);
        },
      ],
      ['users: an ID outside of the sandbox’s can’t be taken', refused(`python3 -c 'import os; os.setuid(65536)'`)],
      [
        'users: a file can’t be given to the host’s root',
        async () => {
          await root('touch /root/mine; chown 0:0 /root/mine; chmod 4755 /root/mine');
          expect((await root('stat -c %u /root/mine')).stdout).toBe('0\n');
          expect(await uidOnHost(it, attacker)).toBeGreaterThan(1_000_000_000);
        },
      ],
      [
        'chroot: no way out by a second one',
        async () => {
          const escape =
            'import os; os.makedirs("/jail",exist_ok=True); f=os.open("/",os.O_RDONLY); os.chroot("/jail"); os.fchdir(f); [os.chdir("..") for _ in range(64)]; os.chroot("."); print(os.listdir("/"))';
          expect((await root(`python3 -c '${escape}'`)).stdout).not.toContain('lost+found');
        },
      ],
      [
        'sudo: does no more than root can',
        async () => {
          expect((await root('sudo -n id -u', 'user')).stdout).toBe('0\n');
          expect((await root('sudo -n mount -t tmpfs none /mnt', 'user')).exitCode).not.toBe(0);
        },
      ],
      [
        'debugging: a program of its own can be traced',
        async () => {
          const trace =
            'import ctypes,os\nc=ctypes.CDLL(None)\np=os.fork()\nif p==0:\n  c.ptrace(0,0,0,0); os.kill(os.getpid(),19); os._exit(7)\nos.waitpid(p,0); c.ptrace(7,p,0,0); print(os.WEXITSTATUS(os.waitpid(p,0)[1]))';
          expect((await root(`python3 -c '${trace}'`)).stdout).toBe('7\n');
        },
      ],
      [
        'programs: what needs sockets, shared memory and processes works',
        async () => {
          const { stdout } = await root(
            `python3 -c 'import socket,multiprocessing,os; print([n for _,n in socket.if_nameindex()], multiprocessing.Pool(2).map(abs,[-1]), os.cpu_count()>0)'; node -e 'console.log(Object.keys(require("os").networkInterfaces()))'; apt-get --version | head -c 3; sudo -u user id -un`,
          );
          expect(stdout).toBe(`['lo', 'eth0'] [1] True\n[ 'lo', 'eth0' ]\naptuser\n`);
        },
      ],
    ];
  }
});

/** The host's user that the kernel charges for a sandbox. Source: ioctl_nsfs(2), NS_GET_OWNER_UID. */
async function ownerOf(it: TestNode, { sandboxId }: NodeSandbox): Promise<number> {
  const code = 'import fcntl,struct,sys; print(struct.unpack("I",fcntl.ioctl(open(sys.argv[1]),0xb704,bytes(4)))[0])';
  return Number(await Bun.$`python3 -c ${code} /proc/${await firstProcess(it, sandboxId)}/ns/user`.text());
}

async function uidOnHost(it: TestNode, { sandboxId }: NodeSandbox): Promise<number> {
  return Number(/^Uid:\s+(\d+)/m.exec(await Bun.file(`/proc/${await firstProcess(it, sandboxId)}/status`).text())?.[1]);
}

/** The sandbox's init, by its PID on the host. */
async function firstProcess(it: TestNode, sandboxId: string): Promise<number> {
  const { pid } = (await Bun.file(join(it.dataDir, 'node/sandboxes', sandboxId, 'record.json')).json()) as {
    pid: number;
  };
  return pid;
}
