import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError } from '../../../base/error.ts';
import type { Cgroups } from '../../cgroup/cgroup.ts';
import { cgroupRootOf, type Layout, type Slot } from '../../layout.ts';
import { HelperError, type Helper } from '../../native/helper.ts';
import { namespaceOwner } from '../../native/namespace-owner.ts';
import { openNetworkNamespace } from '../../native/netns.ts';
import { seccompFilter } from '../../seccomp/filter.ts';
import type { Driver } from '../driver.ts';
import { endProcesses, groupOperations } from '../group-operations.ts';
import { blankConfig, shownOfSysfs } from './config.ts';

const runTimeoutMs = 20_000;

/** ENOTDIR, ELOOP */
const notADirectory = new Set([20, 40]);

/** Namespaces, control groups and seccomp by crun, an OCI runtime. The helper calls it, in its own mount namespace. */
export function createCrunDriver(options: { helper: Helper; helperBinary: string; cgroups: Cgroups; layout: Layout; hostname: string }): Driver {
  const { helper, cgroups, layout } = options;
  const filter = seccompFilter(process.arch === 'arm64' ? 'arm64' : 'x64');
  const cgroupRoot = cgroupRootOf(layout);
  const cgroupOf = (slot: Slot) => `${cgroupRoot}/${slot.name}`;
  const crun = (...args: string[]) => ['crun', '--root', layout.runtimeState, '--cgroup-manager=cgroupfs', ...args];
  const bootIdOf = (slot: Slot) => join(layout.bootIds, slot.name);
  let sealed: Promise<unknown> | undefined;
  cgroups.makeParent(cgroupRoot);
  mkdirSync(layout.bootIds, { recursive: true, mode: 0o711 });
  for (const dir of [layout.bundles, layout.runtimeState]) mkdirSync(dir, { recursive: true });
  for (const name of ['.agent', 'dev', 'proc', 'sys', 'newroot']) mkdirSync(join(layout.skeleton, name), { recursive: true });
  for (const path of ['/sys/fs/cgroup', ...shownOfSysfs]) mkdirSync(join(layout.sysTree, path.slice('/sys'.length)), { recursive: true });

  return {
    name: 'crun',
    adoptsRoot: true,

    async startBlank(slot, { controlToken, bootId, resources }) {
      const bundle = join(layout.bundles, slot.name);
      const pidFile = join(bundle, 'pid');
      mkdirSync(bundle, { recursive: true });
      const bootIdFile = this.writeBootId(slot, bootId);
      const config = blankConfig({
        slot,
        resources,
        hostname: options.hostname,
        skeleton: layout.skeleton,
        agentDir: layout.agentMount,
        bootIdFile,
        sysDir: layout.sysTree,
        cgroupPath: cgroupOf(slot),
        seccompFilter: filter,
      });
      writeFileSync(join(bundle, 'config.json'), JSON.stringify(config));
      await (sealed ??= sealProgram(helper));
      const run = crun('run', '--detach', '--pid-file', pidFile, '--bundle', bundle, slot.name);
      const { status, output } = await helper.spawn([...namespaceOwner(options.helperBinary, slot.baseId), ...run], { timeoutMs: runTimeoutMs, stdin: controlToken });
      if (status === 0) return { pid: Number(readFileSync(pidFile, 'utf8')) };
      await this.remove(slot);
      throw new AtollError('internal', `crun could not start a sandbox: ${output.trim() || `status ${status}`}`);
    },

    async giveRoot(slot, pid, { layers, disk }) {
      await helper.call('adopt-root', pid, slot.baseId, disk, layers.length, ...layers);
    },

    async mountVolume(slot, pid, { source, path }) {
      await helper.call('bind', pid, slot.baseId, source, path).catch((error: unknown) => {
        if (!(error instanceof HelperError) || !notADirectory.has(error.errno)) throw error;
        throw new AtollError('invalid', `a volume can't be mounted at ${path}: a symbolic link or a file is on the way there`, { cause: error });
      });
    },

    ...groupOperations(cgroups, cgroupOf),
    openNetwork: (_slot, pid) => openNetworkNamespace(pid),

    writeBootId(slot, bootId) {
      const file = bootIdOf(slot);
      rmSync(file, { force: true });
      writeFileSync(file, `${bootId}\n`, { mode: 0o444 });
      return file;
    },

    async remove(slot) {
      await endProcesses(cgroups, cgroupOf(slot));
      // All that `crun delete` would do for a container that has ended, without the 5 ms of starting it;
      // unlike it, this also removes what was only half created.
      await cgroups.remove(cgroupOf(slot));
      for (const dir of [layout.runtimeState, layout.bundles, layout.bootIds]) rmSync(join(dir, slot.name), { recursive: true, force: true });
    },

    leftovers() {
      const names = [...cgroups.list(cgroupRoot), ...[layout.bundles, layout.runtimeState, layout.bootIds].flatMap(dir => readdirSync(dir))];
      return new Set(names.flatMap(name => (/^s\d+$/.test(name) ? [Number(name.slice(1))] : [])));
    },

    retire: () => cgroups.remove(cgroupRoot),
  };
}

/** crun then starts at once. Without the copy, it makes one for each start: two mounts, a file and a second start of itself. */
async function sealProgram(helper: Helper): Promise<void> {
  const path = Bun.which('crun');
  if (path !== null) await helper.call('seal', 'crun', path);
}
