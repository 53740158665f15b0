import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomHex } from '../../../src/base/crypto/secret.ts';
import { initAgent } from '../../../src/node/agent-client/call.ts';
import { agentListens } from '../../../src/node/agent-client/listens.ts';
import { runInSandbox } from '../../../src/node/agent-client/process.ts';
import { keepAgent } from '../../../src/node/agent-client/copy.ts';
import { detectCgroups } from '../../../src/node/cgroup/cgroup.ts';
import { createCrunDriver } from '../../../src/node/drivers/crun/driver.ts';
import { claimInstallation } from '../../../src/node/installation.ts';
import {
  gatewayAddress,
  innerAddress,
  innerMac,
  layoutOf,
  outerMac,
  slotOf,
  type Slot,
} from '../../../src/node/layout.ts';
import { startHelper, type Helper } from '../../../src/node/native/helper.ts';
import { openNetworkNamespace, type NetworkNamespace } from '../../../src/node/native/netns.ts';
import { createDisks } from '../../../src/node/disks/disks.ts';
import { createLayers } from '../../../src/node/layers/store.ts';
import { checkpointToPause } from '../../../src/node/snapshot/checkpoint.ts';
import type { CheckpointSource } from '../../../src/node/snapshot/checkpoint-source.ts';
import { findCriu, learnKernel, lighten } from '../../../src/node/snapshot/criu.ts';
import type { LaterMeasure } from '../../../src/node/snapshot/later-pages.ts';
import { openSnapshot, restore, type OpenSnapshot, type RestoreHost } from '../../../src/node/snapshot/restore.ts';
import { createHurry } from '../../../src/node/snapshot/grace-periods.ts';
import { ensureBaseLayer } from '../../support/base-layer.ts';

const bootId = '01234567-89ab-4cde-8f01-23456789abcd';
const root = join(import.meta.dir, '../../..');
export const resources = { cpuCount: 2, memoryMiB: 1024, diskMiB: 2048 };

/** A sandbox made from the base layer, without the platform around it. */
export type TestSandbox = {
  slot: Slot;
  pid: number;
  namespace: NetworkNamespace;
  source: CheckpointSource;
  ended: Promise<void>;
  /** Runs a command as root and answers its standard output. Fails if the command does. */
  run(command: string): Promise<string>;
  /**
   * Writes a program into the sandbox and starts it separately, with its output in `<name>.log`. All of it is in /root.
   */
  launch(name: string, text: string): Promise<void>;
  answers(): Promise<void>;
};

/** What a test does during a restore; the restore fails if that does. */
export type RestoreHooks = {
  /** Replaces the machine's. */
  helper?: Helper;
  onNamespaces?(first: number): Promise<void>;
  onRestored?(first: number): Promise<void>;
  beforeResume?(first: number): Promise<void>;
};

export type Machine = AsyncDisposable & {
  dataDir: string;
  /** The cgroup of all its sandboxes, relative to the root of each hierarchy. */
  cgroup: string;
  host: RestoreHost;
  /** For snapshots, and for disks that a test makes. */
  snapshots: string;
  disks: string;
  start(slotNumber: number): Promise<TestSandbox>;
  /** Restores a snapshot in a slot, on the given disk image. */
  restore(
    snapshot: OpenSnapshot,
    slotNumber: number,
    disk: string,
    later?: LaterMeasure,
    hooks?: RestoreHooks,
  ): Promise<TestSandbox>;
  /** Frees the slot of a failed restore. */
  abandon(slotNumber: number): Promise<void>;
  /** Pauses into `<snapshots>/<name>`, shows that to `look`, and restores in the next slot. */
  cycle(sandbox: TestSandbox, name: string, look?: (directory: string) => void): Promise<TestSandbox>;
  /** Waits for the end of a sandbox's processes and frees its slot. Its disk image stays. */
  release(sandbox: TestSandbox): Promise<void>;
  kill(sandbox: TestSandbox): Promise<void>;
};

/** The parts of a node that a sandbox needs, on their own data directory. */
export async function startMachine(): Promise<Machine> {
  const dataDir = mkdtempSync(join(tmpdir(), 'atoll-snapshot-'));
  const installation = claimInstallation(dataDir);
  const layout = layoutOf(dataDir, installation.runDir, installation.number);
  const snapshots = join(layout.data, 'snapshots');
  for (const dir of [layout.data, layout.mounts, layout.disks, snapshots]) mkdirSync(dir, { recursive: true });
  const helperBinary = join(root, 'dist/helper');
  const helper = await startHelper({ binary: helperBinary, runDir: layout.run, onLost: () => {} });
  const cgroups = detectCgroups();
  // A copy: rebuilding the agent must not pull it away from under a sandbox.
  const agentDir = layout.agentMount;
  mkdirSync(agentDir, { recursive: true });
  await helper.call('show', { directory: await keepAgent(join(root, 'dist/agent'), layout.agents), at: agentDir });
  const driver = createCrunDriver({
    helper,
    helperBinary,
    cgroups,
    layout,
    hostname: 'sandbox',
    mtu: 1500,
    runscDir: undefined,
  });
  const disks = createDisks({ helper, dir: layout.disks, files: { 'etc/hosts': '127.0.0.1 localhost sandbox\n' } });
  const layers = createLayers({ helper, dir: layout.layers, mounts: layout.mounts });
  const base = await ensureBaseLayer(layers);
  const layer = await layers.mount(base);
  const host: RestoreHost = {
    helper,
    helperBinary,
    cgroups,
    criu: await lighten({ helper, helperBinary }, findCriu(join(root, 'dist/criu'))),
    runDir: layout.run,
    hurry: createHurry(),
    programDir: join(layout.run, 'programs'),
    stagingDir: join(layout.data, 'staging'),
    mountsDir: layout.mounts,
    canBringLater: true,
  };
  await learnKernel(host);
  const cgroupOf = (slot: Slot) => `/atoll${installation.number}/${slot.name}`;
  const groupOf = (slot: Slot) => ({
    freeze: () => driver.freeze(slot),
    beginFreeze: () => cgroups.freeze(cgroupOf(slot)),
    frozen: () => driver.frozen(slot),
    thaw: () => driver.thaw(slot),
    processes: () => cgroups.processes(cgroupOf(slot)),
  });
  const mountOf = (slot: Slot) => join(layout.mounts, slot.name);
  const linkUp = (slot: Slot, pid: number) =>
    helper.call('link-up', {
      pid,
      name: slot.interfaceName,
      slotAddress: slot.address,
      innerAddress,
      gateway: gatewayAddress,
      outerMac,
      innerMac,
      mtu: 1500,
    });

  const watched = async (slot: Slot, pid: number, disk: string, namespace: NetworkNamespace): Promise<TestSandbox> => {
    const ended = helper.exited(slot.name);
    await helper.call('watch', { tag: slot.name, pid });
    const run = async (command: string) => {
      let stdout = '';
      let stderr = '';
      const process = {
        argv: ['/bin/bash', '-c', command] as [string, ...string[]],
        user: 'root',
        env: {},
        cwd: '/root',
        timeoutMs: 60_000,
      };
      const { exitCode, status } = await runInSandbox(namespace, process, (stream, bytes) => {
        if (stream === 'stdout') stdout += Buffer.from(bytes).toString();
        else stderr += Buffer.from(bytes).toString();
      });
      if (exitCode !== 0) throw new Error(`${command}: ${status} ${stderr}`);
      return stdout;
    };
    return {
      slot,
      pid,
      namespace,
      ended,
      run,
      answers: () => agentListens(namespace, ended),
      async launch(name, text) {
        await run(
          `base64 -d > /root/${name} <<< ${Buffer.from(text).toString('base64')}; chmod +x /root/${name}; setsid /root/${name} < /dev/null > /root/${name}.log 2>&1 &`,
        );
      },
      source: {
        ...{
          pid,
          slotName: slot.name,
          group: groupOf(slot),
          disk,
          diskMount: mountOf(slot),
          layers: [layer],
          volumes: [],
        },
        memoryBytes: () => driver.memoryUsed(slot),
      },
    };
  };
  const release = async ({ slot, ended, namespace }: TestSandbox) => {
    await ended;
    namespace.close();
    await driver.remove(slot);
    await helper.call('link-down', { name: slot.interfaceName });
    await disks.close(mountOf(slot));
  };

  const machine: Machine = {
    dataDir,
    cgroup: `/atoll${installation.number}`,
    host,
    snapshots,
    disks: layout.disks,
    release,
    async start(slotNumber) {
      const slot = slotOf(installation.number, slotNumber);
      const controlToken = randomHex(32);
      const { pid, announced } = await driver.start(slot, { controlToken, bootId, resources, root: null });
      const disk = join(layout.disks, `test-${randomHex(4)}.img`);
      await disks.create(disk, resources.diskMiB, mountOf(slot));
      await linkUp(slot, pid);
      const sandbox = await watched(slot, pid, disk, openNetworkNamespace(pid));
      await agentListens(sandbox.namespace, sandbox.ended, announced);
      await driver.giveRoot(slot, pid, { layers: [layer], disk: mountOf(slot) });
      await initAgent(sandbox.namespace, controlToken, {
        envVars: {},
        accessToken: null,
        timestamp: new Date().toISOString(),
        defaultUser: 'user',
        defaultWorkdir: '',
      });
      return sandbox;
    },
    async restore(snapshot, slotNumber, disk, later, hooks) {
      const slot = slotOf(installation.number, slotNumber);
      await disks.open(disk, mountOf(slot));
      let restored = 0;
      const { pid } = await restore({ ...host, helper: hooks?.helper ?? helper }, snapshot, {
        slot,
        cgroupPath: cgroupOf(slot),
        resources,
        ...(later && { later }),
        diskMount: mountOf(slot),
        layers: [layer],
        agentDir,
        ownFilesDir: driver.makeOwnFiles(slot, { bootId, resources }),
        sysDir: layout.sysTree,
        volumes: {},
        async onNamespaces(first) {
          restored = first;
          await linkUp(slot, first);
          await hooks?.onNamespaces?.(first);
        },
        onRestored: async first => hooks?.onRestored?.(first),
        ...(hooks?.beforeResume && { beforeResume: async () => hooks.beforeResume?.(restored) }),
      });
      return watched(slot, pid, disk, openNetworkNamespace(pid));
    },
    async abandon(slotNumber) {
      const slot = slotOf(installation.number, slotNumber);
      await driver.remove(slot);
      await helper.call('link-down', { name: slot.interfaceName });
      await disks.close(mountOf(slot));
    },
    async cycle(sandbox, name, look) {
      const directory = join(snapshots, name);
      await checkpointToPause(host, sandbox.source, {
        directory,
        name,
        facts: {},
        then: 'end',
        onComplete: async () => {},
      });
      look?.(directory);
      await release(sandbox);
      const restored = await machine.restore(
        await openSnapshot(host, directory),
        (sandbox.slot.number + 1) % 100,
        sandbox.source.disk,
      );
      rmSync(directory, { recursive: true });
      return restored;
    },
    async kill(sandbox) {
      await helper.call('kill', { tag: sandbox.slot.name });
      await release(sandbox);
      rmSync(sandbox.source.disk, { force: true });
    },
    async [Symbol.asyncDispose]() {
      await driver.retire();
      await helper.stop();
      installation.unlock();
      installation.release();
      rmSync(dataDir, { recursive: true });
    },
  };
  return machine;
}
