import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError } from '../../../base/error.ts';
import { withoutPlaces } from '../../../base/process/without-places.ts';
import { readIfThere } from '../../../base/small-file.ts';
import { nodeFull, tellsShortage } from '../../../protocol/no-room.ts';
import { placeTaken, platformDirectories } from '../../../protocol/template/platform-directories.ts';
import { cgroupRootOf, type Layout, type Slot } from '../../layout.ts';
import { HelperError } from '../../native/helper-process.ts';
import type { SpawnResult } from '../../native/operations.ts';
import type { Helper } from '../../native/helper.ts';
import { namespaceOwner } from '../../native/namespace-owner.ts';
import { openNetworkNamespace } from '../../native/netns.ts';
import { readSeccompFilter } from '../../seccomp/filter.ts';
import type { Driver } from '../driver.ts';
import type { DriverFactory, DriverHost } from '../factory.ts';
import { endProcesses, groupOperations } from '../group-operations.ts';
import { createOwnFiles } from '../../numbers/own-files.ts';
import { hostFactsOf, sharedMemoryBytes, standbyConfig, shownOfSysfs } from './config.ts';

/** The OCI runtime, by the distribution's name for it. */
export const crunProgram = 'crun';

const runTimeoutMs = 20_000;
/** Makes the boot clock of a sandbox begin with it (native/namespace-owner.c). */
const freshClock = 'ATOLL_FRESH_CLOCK=1';

/** ENOTDIR, ELOOP */
const notADirectory = new Set([20, 40]);

/** The driver that uses namespaces of the host's kernel. Set-up has installed crun from the distribution. */
export const crunFactory: DriverFactory = {
  name: 'crun',
  title: 'crun',
  kernel: 'host',
  create: createCrunDriver,
  whyUnavailable: () => undefined,
};

/**
 * Isolates by namespaces, control groups and seccomp, through crun, an OCI runtime. The helper runs it, in its own
 * mount namespace.
 */
export function createCrunDriver(options: DriverHost): Driver {
  const { helper, helperBinary, cgroups, layout } = options;
  const host = hostFactsOf(readSeccompFilter(helperBinary));
  const cgroupRoot = cgroupRootOf(layout);
  const cgroupOf = (slot: Slot) => `${cgroupRoot}/${slot.name}`;
  const crun = [crunProgram, '--root', layout.runtimeState, '--cgroup-manager=disabled'];
  const ownFiles = createOwnFiles();
  const ownFilesOf = (slot: Slot) => join(layout.ownFiles, slot.name);
  const seal = sealing(helper);
  cgroups.makeParent(cgroupRoot);
  makeDirectories(layout);

  return {
    name: 'crun',
    capabilities: { adoptsRoot: true, withoutCheckpoints: null, hasIpv6: true },

    async start(slot, { controlToken, bootId, resources }) {
      const bundle = join(layout.bundles, slot.name);
      const pidFile = join(bundle, 'pid');
      try {
        mkdirSync(bundle, { recursive: true });
        const ownFilesDir = this.makeOwnFiles(slot, { bootId, resources });
        writeConfig(options, bundle, { slot, resources, ownFilesDir, host });
        await seal();
        // crun would move the sandbox's first process into groups that it makes, which holds up the whole machine
        // (native/groups.c): so the process is born in these groups.
        const groups = cgroups.make(cgroupOf(slot), resources);
        const run = [...crun, 'run', '--detach', '--pid-file', pidFile, '--bundle', bundle, slot.name];
        const argv = [...namespaceOwner(helperBinary, slot.baseId), freshClock, ...run];
        const begun = await helper.start(slot.name, argv, { timeoutMs: runTimeoutMs, stdin: controlToken, groups });
        return { pid: pidOf(begun, pidFile), announced: begun.closed };
      } catch (error) {
        await this.remove(slot);
        throw error;
      }
    },

    async giveRoot(slot, pid, { layers, disk }) {
      const { taken } = await helper.call('adopt-root', { pid, baseId: slot.baseId, disk, layers });
      if (taken !== undefined) throw placeTaken(taken);
    },

    nameHost: (pid, name) => helper.call('name-host', { pid, name }),

    async mountVolume(slot, pid, { source, path }) {
      await helper
        .call('bind', { pid, baseId: slot.baseId, source, target: path })
        .catch((error: unknown) => throwMountError(error, path));
    },

    ...groupOperations(cgroups, cgroupOf),
    async resize(slot, pid, resources) {
      cgroups.setLimits(cgroupOf(slot), resources);
      await helper.call('size-shared-memory', { pid, bytes: sharedMemoryBytes(resources) });
      ownFiles.resize(ownFilesOf(slot), resources);
    },
    openNetwork: (_slot, pid) => openNetworkNamespace(pid),

    makeOwnFiles(slot, facts) {
      const directory = ownFilesOf(slot);
      ownFiles.make(directory, facts);
      return directory;
    },
    refreshOwnFiles(slot, resources, used) {
      ownFiles.refresh(ownFilesOf(slot), resources, used);
    },

    async remove(slot) {
      await endProcesses(cgroups, cgroupOf(slot));
      // Does all that `crun delete` would do for a container that has ended, without the 5 ms of starting it; unlike
      // `crun delete`, it also removes what was only half created.
      await cgroups.remove(cgroupOf(slot));
      for (const dir of [layout.runtimeState, layout.bundles, layout.ownFiles])
        rmSync(join(dir, slot.name), { recursive: true, force: true });
    },

    leftovers() {
      const files = [layout.bundles, layout.runtimeState, layout.ownFiles].flatMap(dir => readdirSync(dir));
      return slotNumbers([...cgroups.list(cgroupRoot), ...files]);
    },

    retire: () => cgroups.remove(cgroupRoot),
  };
}

/** The first process of what crun has started. */
function pidOf(begun: SpawnResult, pidFile: string): number {
  const pid = begun.status === 0 ? readIfThere(pidFile) : undefined;
  if (pid === undefined) throw startError(begun);
  return Number(pid);
}

/** crun succeeds silently if it has no process to continue with. */
function startError({ status, output }: SpawnResult): AtollError {
  const lacksSomething = status === 0 || tellsShortage(output);
  const why = output.trim() || (status === 0 ? 'it has left no process' : `status ${status}`);
  // A caller that hears that there is no room also hears why.
  const told = lacksSomething ? withoutPlaces(why) : why;
  return new AtollError(lacksSomething ? 'unavailable' : 'internal', `crun could not start a sandbox: ${told}`, {
    ...(lacksSomething && { detail: nodeFull }),
  });
}

/** Makes the directories from which standby sandboxes start: bundles, and the mount points of their first root. */
function makeDirectories(layout: Layout): void {
  mkdirSync(layout.ownFiles, { recursive: true, mode: 0o711 });
  for (const dir of [layout.bundles, layout.runtimeState]) mkdirSync(dir, { recursive: true });
  for (const name of [...platformDirectories, 'newroot']) mkdirSync(join(layout.skeleton, name), { recursive: true });
  for (const path of ['/sys/fs/cgroup', ...shownOfSysfs])
    mkdirSync(join(layout.sysTree, path.slice('/sys'.length)), { recursive: true });
}

/** Writes the configuration from which crun starts a standby sandbox. */
function writeConfig(
  { layout, hostname }: DriverHost,
  bundle: string,
  own: Pick<Parameters<typeof standbyConfig>[0], 'slot' | 'resources' | 'ownFilesDir' | 'host'>,
): void {
  const { skeleton, agentMount: agentDir, sysTree: sysDir } = layout;
  const config = standbyConfig({ ...own, hostname, skeleton, agentDir, sysDir });
  writeFileSync(join(bundle, 'config.json'), JSON.stringify(config));
}

/** The slots among names; other names do not belong to the platform. */
function slotNumbers(names: string[]): Set<number> {
  return new Set(names.flatMap(name => (/^s\d+$/.test(name) ? [Number(name.slice(1))] : [])));
}

/** What a sandbox has put in the way of a mount is the sandbox's own fault. */
function throwMountError(error: unknown, path: string): never {
  if (!(error instanceof HelperError) || !notADirectory.has(error.errno)) throw error;
  throw new AtollError(
    'invalid',
    `a volume can't be mounted at ${path}: a symbolic link or a file is on the way there`,
    { cause: error },
  );
}

/** Seals the runtime, once for all starts. If that fails, the next start tries again. */
function sealing(helper: Helper): () => Promise<void> {
  let sealed: Promise<void> | undefined;
  return () =>
    (sealed ??= sealProgram(helper).catch((error: unknown) => {
      sealed = undefined;
      throw error;
    }));
}

/**
 * Lets crun start at once. Without the sealed copy, it makes one at each start: two mounts, a file and a second start
 * of itself.
 */
async function sealProgram(helper: Helper): Promise<void> {
  const path = Bun.which(crunProgram);
  if (path !== null) await helper.call('seal', { name: 'crun', path });
}
