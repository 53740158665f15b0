import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { processorArguments } from './acceleration.ts';
import type { Architecture } from './host-list.ts';
import type { Image } from './image.ts';
import type { Machine } from './machine.ts';
import { askMonitor } from './monitor.ts';
import { mustRun, run } from './program.ts';

/** An emulated guest is about ten times slower than its host. */
const bootTimeoutMs = 15 * 60_000;
const sshTryTimeoutMs = 60_000;
const betweenTriesMs = 2_000;
const powerOffTimeoutMs = 90_000;
/** A second processor, emulated in turn with the first, costs more than it gives. */
const cores = 1;
const memoryMiB = 4096;

/** A machine in QEMU. It ends with `end`, or by force after `lifetimeMs`, whatever happens to its laboratory. */
export type Guest = Machine & {
  /** A command to paste for logging in. */
  login: string;
  /** Saves the present memory and disk, under a name in its disk; a later start continues there with `from`. */
  keep(name: string): Promise<void>;
  /** Shuts it down as an operator does, so that its disk is consistent. */
  powerOff(): Promise<void>;
  end(): Promise<void>;
};

type GuestOptions = {
  name: string;
  architecture: Architecture;
  image: Image;
  /** The disk that it writes to (qcow2). */
  overlay: string;
  /** A state that `keep` has saved in that disk, to continue from instead of booting. */
  from?: string;
  /** Archives (tar) that appear as further disks, `/dev/vdb` and so on. */
  archives: string[];
  /** Whether it reaches what its host reaches; otherwise it reaches nothing. */
  network: boolean;
  privateKey: string;
  /** Where console and sockets go. */
  directory: string;
  lifetimeMs: number;
};

/** QEMU's program for each type of machine, the machine, and the console of that. */
const emulators: Record<Architecture, { program: string; machine: string; console: string }> = {
  x64: { program: 'qemu-system-x86_64', machine: 'q35', console: 'ttyS0' },
  arm64: { program: 'qemu-system-aarch64', machine: 'virt', console: 'ttyAMA0' },
};

/** Starts a guest and waits until the laboratory can log in. */
export async function startGuest(options: GuestOptions): Promise<Guest> {
  const { directory, image } = options;
  const emulator = emulators[options.architecture];
  mkdirSync(directory, { recursive: true });
  const port = await freePort();
  const ssh = ['-p', String(port), '-i', options.privateKey, ...sshOptions(directory)];
  const child = spawn(
    'timeout',
    [
      '--kill-after=5',
      String(Math.ceil(options.lifetimeMs / 1000)),
      'nice',
      '-n',
      '1',
      emulator.program,
      ...qemuArguments(options, port),
    ],
    { detached: true, stdio: ['ignore', 'ignore', 'inherit'] },
  );
  const ended = once(child, 'exit');
  const onExit = () => killAll(child);
  process.on('exit', onExit);

  const guest: Guest = {
    name: options.name,
    kind: 'guest',
    login: ['ssh', ...ssh, 'root@127.0.0.1'].join(' '),
    run: (script, { timeoutMs, log }) =>
      // The script arrives on standard input but gets an empty one itself, so that its programs can't read the rest of
      // it.
      run(['ssh', ...ssh, 'root@127.0.0.1', 'script=$(cat); exec bash -c "$script" </dev/null'], {
        timeoutMs,
        input: script,
        ...(log === undefined ? {} : { log }),
      }),
    async reboot() {
      const before = await bootIdOf(guest);
      await guest.run('systemctl reboot', { timeoutMs: sshTryTimeoutMs });
      await untilIn(guest, child, text => text !== '' && text !== before);
    },
    async keep(name) {
      const answer = await askMonitor(monitorOf(directory), `savevm ${name}`);
      if (answer !== '') throw new Error(`QEMU could not keep the machine: ${answer}`);
    },
    async powerOff() {
      await guest.run('systemctl poweroff', { timeoutMs: sshTryTimeoutMs });
      const timer = setTimeout(() => killAll(child), powerOffTimeoutMs);
      await ended.finally(() => clearTimeout(timer));
      process.off('exit', onExit);
    },
    async end() {
      killAll(child);
      await ended;
      process.off('exit', onExit);
    },
  };
  try {
    await untilIn(guest, child, text => text !== '');
    return guest;
  } catch (error) {
    await guest.end();
    throw new Error(
      `${options.name} did not come up: ${String(error)}\n${readFileSync(join(directory, 'console.log'), 'utf8').slice(-2000)}`,
    );
  }

  function qemuArguments({ overlay, archives, network, from }: GuestOptions, port: number): string[] {
    return [
      ...['-machine', emulator.machine, ...processorArguments(options.architecture)],
      ...['-smp', String(cores), '-m', String(memoryMiB)],
      // Guards against speculation cost an emulated machine a lot, and change nothing that is examined here.
      ...[
        '-kernel',
        image.kernel,
        '-initrd',
        image.initrd,
        '-append',
        `root=/dev/vda rw console=${emulator.console} mitigations=off`,
      ],
      ...['-drive', `file=${overlay},format=qcow2,if=virtio,cache=unsafe,discard=unmap`],
      ...archives.flatMap(archive => ['-drive', `file=${archive},format=raw,if=virtio,readonly=on`]),
      ...['-nic', `user,model=virtio-net-pci,hostfwd=tcp:127.0.0.1:${port}-:22${network ? '' : ',restrict=on'}`],
      ...[
        '-device',
        'virtio-rng-pci',
        '-display',
        'none',
        '-serial',
        `file:${join(directory, 'console.log')}`,
        '-monitor',
        `unix:${monitorOf(directory)},server=on,wait=off`,
      ],
      ...(from === undefined ? [] : ['-loadvm', from]),
    ];
  }
}

/** A new disk over `base`: it holds only what differs. */
export async function makeOverlay(base: string, format: 'raw' | 'qcow2', overlay: string): Promise<void> {
  await mustRun(['qemu-img', 'create', '-q', '-f', 'qcow2', '-F', format, '-b', base, overlay], { timeoutMs: 60_000 });
}

const monitorOf = (directory: string) => join(directory, 'monitor');

const sshOptions = (directory: string) =>
  [
    'BatchMode=yes',
    'StrictHostKeyChecking=no',
    'UserKnownHostsFile=/dev/null',
    'LogLevel=ERROR',
    'ServerAliveInterval=30',
    'ServerAliveCountMax=10',
    'ConnectTimeout=45',
    'ControlMaster=auto',
    `ControlPath=${join(directory, 'ssh')}`,
    'ControlPersist=60',
  ].flatMap(option => ['-o', option]);

async function untilIn(guest: Guest, child: ChildProcess, accept: (bootId: string) => boolean): Promise<void> {
  const deadline = Date.now() + bootTimeoutMs;
  while (!accept(await bootIdOf(guest))) {
    if (child.exitCode !== null) throw new Error(`QEMU ended with ${child.exitCode}`);
    if (Date.now() > deadline) throw new Error(`no login within ${bootTimeoutMs / 1000} s`);
    await new Promise(resolve => setTimeout(resolve, betweenTriesMs));
  }
}

async function bootIdOf(guest: Guest): Promise<string> {
  const { exitCode, output } = await guest.run('cat /proc/sys/kernel/random/boot_id', { timeoutMs: sshTryTimeoutMs });
  return exitCode === 0 ? output.trim() : '';
}

function killAll(child: ChildProcess): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  await new Promise(resolve => server.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : 0;
}
