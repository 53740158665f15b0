import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { assert, AtollError } from '../../../base/error.ts';
import { ifThere } from '../../../base/if-there.ts';
import type { SandboxResources } from '../../../protocol/node.ts';
import { placeTaken, platformDirectories } from '../../../protocol/template/platform-directories.ts';
import { accessAddress, accessMac, cgroupRootOf, type Slot } from '../../layout.ts';
import { pathInHelper } from '../../native/helper.ts';
import type { Driver, StartRoot } from '../driver.ts';
import type { DriverFactory, DriverHost } from '../factory.ts';
import { endProcesses, groupOperations } from '../group-operations.ts';
import { sandboxConfig } from './config.ts';
import { findRunsc } from './find-runsc.ts';
import { openAccess } from './network.ts';

/** A start that takes a tenth of a second on a current processor takes ten seconds on an emulated one. */
const createTimeoutMs = 45_000;
const startTimeoutMs = 45_000;

/** Why gVisor keeps no memory. */
const withoutCheckpoints =
  'gVisor’s own checkpoints are not used: programs that wait by epoll, the agent among them, do not all survive a ' +
  'restore';

/** The driver of a kernel in user space. */
export const gvisorFactory: DriverFactory = {
  name: 'gvisor',
  title: 'gVisor',
  kernel: 'own',
  create: createGvisorDriver,
  whyUnavailable({ runscDir }) {
    const runsc = findRunsc(runscDir);
    return runsc.found ? undefined : runsc.reason;
  },
};

/**
 * A kernel of its own for each sandbox: gVisor's runsc with the systrap platform. It takes its root file system and
 * its network interfaces at its start and can't take others later, so a sandbox is started for its template.
 */
function createGvisorDriver(options: DriverHost): Driver {
  const { helper, cgroups } = options;
  const places = placesOf(options);
  const { stateDir, cgroupOf, stateOf, rootOf, runscOf } = places;
  mkdirSync(stateDir, { recursive: true, mode: 0o711 });

  return {
    name: 'gvisor',
    capabilities: { adoptsRoot: false, withoutCheckpoints, hasIpv6: false },

    async start(slot, { controlToken, resources, root }) {
      assert(root, 'gVisor starts with a root file system');
      const bundle = join(stateOf(slot), 'bundle');
      const pidFile = join(bundle, 'pid');
      // From here on the slot belongs to this driver.
      mkdirSync(bundle, { recursive: true });
      try {
        const groups = cgroups.make(cgroupOf(slot), resources);
        const config = await mountedConfig(options, places, slot, { root, resources });
        writeFileSync(join(bundle, 'config.json'), JSON.stringify(config));
        const create = runscOf(slot, 'create', '--bundle', bundle, '--pid-file', pidFile, slot.name);
        // Everything that gVisor starts is born in the sandbox's group.
        const { status, output, closed } = await helper.start(slot.name, create, {
          timeoutMs: createTimeoutMs,
          stdin: controlToken,
          groups,
        });
        if (status !== 0)
          throw new AtollError('internal', `runsc could not create a sandbox: ${output.trim() || `status ${status}`}`);
        return { pid: Number(readFileSync(pidFile, 'utf8')), announced: closed };
      } catch (error) {
        await this.remove(slot);
        throw error;
      }
    },

    async begin(slot, pid) {
      const { outside, inside } = accessAddress;
      await helper.call('access-up', {
        outer: { pid: outsideOf(this.processes(slot), pid), address: outside, mac: accessMac.outside },
        inner: { pid, address: inside, mac: accessMac.inside },
        mtu: options.mtu,
      });
      const start = [options.helperBinary, 'without-network-settings', ...runscOf(slot, 'start', slot.name)];
      const { status, output } = await helper.spawn(start, { timeoutMs: startTimeoutMs });
      if (status !== 0)
        throw new AtollError('internal', `runsc could not start a sandbox: ${output.trim() || `status ${status}`}`);
    },

    // The sandbox has had both from its start.
    resize: async () => {},
    giveRoot: async () => {},
    async mountVolume(_slot, _pid, { path }) {
      throw new AtollError('internal', `gVisor takes no mount once it runs: ${path}`);
    },
    openNetwork(slot, pid) {
      return openAccess(outsideOf(this.processes(slot), pid), pid);
    },
    ...groupOperations(cgroups, cgroupOf),
    makeOwnFiles() {
      throw new AtollError('internal', 'gVisor makes what its sandboxes read in /proc itself');
    },
    // gVisor computes them from the sandbox's limits, since its start.
    refreshOwnFiles() {},

    async remove(slot) {
      await endProcesses(cgroups, cgroupOf(slot));
      await helper.call('unmount', { at: rootOf(slot) });
      await cgroups.remove(cgroupOf(slot));
      rmSync(rootOf(slot), { recursive: true, force: true });
      rmSync(stateOf(slot), { recursive: true, force: true });
    },

    leftovers: () => new Set(readdirSync(stateDir).map(name => Number(name.slice(1)))),
    retire: async () => rmSync(stateDir, { recursive: true, force: true }),
  };
}

/** Paths of an installation's sandboxes, and the words that runsc is called with. */
function placesOf({ layout, runscDir }: DriverHost) {
  const runsc = findRunsc(runscDir);
  // Without runsc nothing can be started, but sandboxes started before are still looked after.
  const program = runsc.found ? runsc.program : 'runsc';
  const stateDir = join(layout.run, 'gvisor');
  const stateOf = (slot: Slot) => join(stateDir, slot.name);
  return {
    stateDir,
    stateOf,
    cgroupOf: (slot: Slot) => `${cgroupRootOf(layout)}/${slot.name}`,
    rootOf: (slot: Slot) => join(layout.mounts, `root-${slot.name}`),
    runscOf: (slot: Slot, ...args: string[]) => [program, '--root', join(stateOf(slot), 'runsc'), ...flags, ...args],
  };
}

/** Mounts the root of a sandbox and makes the configuration of its start from that. */
async function mountedConfig(
  { helper, layout, hostname }: DriverHost,
  { rootOf, cgroupOf }: ReturnType<typeof placesOf>,
  slot: Slot,
  { root, resources }: { root: StartRoot; resources: SandboxResources },
) {
  const point = rootOf(slot);
  mkdirSync(point, { recursive: true });
  await helper.call('overlay-mount', { baseId: slot.baseId, at: point, disk: root.disk, layers: root.layers });
  // The content is a stranger's: a link in place of /tmp could lead anywhere on the host.
  const isDirectory = (name: string) =>
    lstatSync(join(pathInHelper({ helper }, point), name), { throwIfNoEntry: false })?.isDirectory();
  const taken = platformDirectories.find(name => isDirectory(name) === false);
  if (taken !== undefined) throw placeTaken(taken);
  return sandboxConfig({
    slot,
    root: point,
    hasTmp: isDirectory('tmp') ?? false,
    volumes: root.volumes,
    agentDir: layout.agentMount,
    cgroupPath: cgroupOf(slot),
    hostname: root.hostname ?? hostname,
    isNamedLater: root.hostname === null,
    resources,
  });
}

const flags = [
  '--platform=systrap',
  // gVisor's network stack, not the host kernel's.
  '--network=sandbox',
  // Writes go to the sandbox's disk and not into gVisor's memory,
  '--overlay2=none',
  // and they go at once: a frozen sandbox is complete on the disk.
  '--file-access=shared',
  '--file-access-mounts=shared',
  '--cpu-num-from-quota',
];

/** The file server among a sandbox's processes, which gVisor keeps out of every network. */
function outsideOf(pids: number[], sandboxPid: number): number {
  const sandbox = networkOf(sandboxPid);
  const own = networkOf(process.pid);
  const found = pids.find(pid => ![sandbox, own, undefined].includes(networkOf(pid)));
  if (found === undefined || sandbox === undefined) throw new AtollError('internal', 'the sandbox has ended');
  return found;
}

function networkOf(pid: number): string | undefined {
  return ifThere(() => readlinkSync(`/proc/${pid}/ns/net`), undefined);
}
