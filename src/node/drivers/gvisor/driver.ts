import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { assert, AtollError } from '../../../base/error.ts';
import type { Cgroups } from '../../cgroup/cgroup.ts';
import { accessAddress, accessMac, cgroupRootOf, type Layout, type Slot } from '../../layout.ts';
import { pathInHelper, type Helper } from '../../native/helper.ts';
import { makeControlGroup } from '../../snapshot/control-group.ts';
import type { Driver } from '../driver.ts';
import { endProcesses, groupOperations } from '../group-operations.ts';
import { sandboxConfig } from './config.ts';
import { openAccess } from './network.ts';

const createTimeoutMs = 20_000;
const startTimeoutMs = 20_000;

export type GvisorOptions = {
  /** The program `runsc`. */
  runsc: string;
  helper: Helper;
  helperBinary: string;
  cgroups: Cgroups;
  layout: Layout;
  hostname: string;
  /** The largest packet on the link to a sandbox. */
  mtu: number;
};

/**
 * A kernel of its own for each sandbox: gVisor's runsc with the systrap platform. It takes its root file system and its
 * network interfaces when it starts and can't take others later, so a sandbox is started for its template.
 */
export function createGvisorDriver(options: GvisorOptions): Driver {
  const { helper, cgroups, layout } = options;
  const cgroupOf = (slot: Slot) => `${cgroupRootOf(layout)}/${slot.name}`;
  const stateOf = (slot: Slot) => join(layout.gvisorState, slot.name);
  const rootOf = (slot: Slot) => join(layout.mounts, `root-${slot.name}`);
  const runsc = (slot: Slot, ...args: string[]) => [options.runsc, '--root', join(stateOf(slot), 'runsc'), ...flags, ...args];
  mkdirSync(layout.gvisorState, { recursive: true, mode: 0o711 });

  return {
    name: 'gvisor',
    adoptsRoot: false,

    async startBlank(slot, { controlToken, resources, root }) {
      assert(root, 'gVisor starts with a root file system');
      const bundle = join(stateOf(slot), 'bundle');
      const pidFile = join(bundle, 'pid');
      // From here on the slot is this driver's.
      mkdirSync(bundle, { recursive: true });
      try {
        const point = rootOf(slot);
        mkdirSync(point, { recursive: true });
        await helper.call('overlay-mount', slot.baseId, point, root.disk, root.layers.length, ...root.layers);
        const groupFiles = makeControlGroup(cgroups, cgroupOf(slot), resources);
        // The content is a stranger's: a link in the place of /tmp leads anywhere on the host.
        const hasTmp = lstatSync(join(pathInHelper({ helper }, point), 'tmp'), { throwIfNoEntry: false })?.isDirectory() ?? false;
        const config = sandboxConfig({ slot, root: point, hasTmp, volumes: root.volumes, agentDir: layout.agentMount, cgroupPath: cgroupOf(slot), hostname: options.hostname, resources });
        writeFileSync(join(bundle, 'config.json'), JSON.stringify(config));
        const create = runsc(slot, 'create', '--bundle', bundle, '--pid-file', pidFile, slot.name);
        // All that gVisor starts is born in the sandbox's group.
        const { status, output } = await helper.spawn([options.helperBinary, 'launch-here', ...groupFiles, '--', ...create], { timeoutMs: createTimeoutMs, stdin: controlToken });
        if (status !== 0) throw new AtollError('internal', `runsc could not create a sandbox: ${output.trim() || `status ${status}`}`);
        return { pid: Number(readFileSync(pidFile, 'utf8')) };
      } catch (error) {
        await this.remove(slot);
        throw error;
      }
    },

    async begin(slot, pid) {
      const { outside, inside } = accessAddress;
      await helper.call('access-up', outsideOf(this.processes(slot), pid), pid, outside, inside, accessMac.outside, accessMac.inside, options.mtu);
      const start = [options.helperBinary, 'without-network-settings', ...runsc(slot, 'start', slot.name)];
      const { status, output } = await helper.spawn(start, { timeoutMs: startTimeoutMs });
      if (status !== 0) throw new AtollError('internal', `runsc could not start a sandbox: ${output.trim() || `status ${status}`}`);
    },

    // It has had it from the start.
    giveRoot: async () => {},
    async mountVolume(_slot, _pid, { path }) {
      throw new AtollError('internal', `gVisor takes no mount once it runs: ${path}`);
    },
    openNetwork(slot, pid) {
      return openAccess(outsideOf(this.processes(slot), pid), pid);
    },
    ...groupOperations(cgroups, cgroupOf),
    writeBootId() {
      throw new AtollError('internal', 'gVisor makes the boot ID itself');
    },

    async remove(slot) {
      await endProcesses(cgroups, cgroupOf(slot));
      await helper.call('unmount', rootOf(slot));
      await cgroups.remove(cgroupOf(slot));
      rmSync(rootOf(slot), { recursive: true, force: true });
      rmSync(stateOf(slot), { recursive: true, force: true });
    },

    leftovers: () => new Set(readdirSync(layout.gvisorState).map(name => Number(name.slice(1)))),
    retire: async () => rmSync(layout.gvisorState, { recursive: true, force: true }),
  };
}

const flags = [
  '--platform=systrap',
  // Its network stack, not the host kernel's.
  '--network=sandbox',
  // Writes go to the sandbox's disk and not into gVisor's memory,
  '--overlay2=none',
  // at once: what stands still is whole on the disk.
  '--file-access=shared',
  '--file-access-mounts=shared',
  '--cpu-num-from-quota',
];

/** Of a sandbox's processes the one that gVisor keeps away from every network: its file server. */
function outsideOf(pids: number[], sandboxPid: number): number {
  const sandbox = networkOf(sandboxPid);
  const own = networkOf(process.pid);
  const found = pids.find(pid => ![sandbox, own, undefined].includes(networkOf(pid)));
  if (found === undefined || sandbox === undefined) throw new AtollError('internal', 'the sandbox has ended');
  return found;
}

function networkOf(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/net`);
  } catch {
    return undefined; // it has ended
  }
}
