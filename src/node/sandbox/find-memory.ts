import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../base/error.ts';
import type { SandboxResources } from '../../protocol/node.ts';
import { agentListens } from '../agent-call.ts';
import type { NodeContext } from '../context.ts';
import type { Cgroups } from '../cgroup/cgroup.ts';
import { learnKernel } from '../snapshot/criu.ts';
import { findMemoryKeeping, memoryKeepingFile } from '../snapshot/memory-keeping.ts';
import type { OpenSnapshot, RestoreHost } from '../snapshot/restore.ts';
import { testMemoryKeeping, type TestedSandbox } from '../snapshot/self-test.ts';
import { startBlank, type Blank } from './blank.ts';
import { checkpointSource, type Memory } from './memory.ts';
import { releaseSlot } from './release.ts';
import { releaseBlank } from './remove.ts';
import { restoreBlank } from './restore-blank.ts';
import { slotDisk, slotMountPoint } from './slot-disk.ts';

export type FindMemoryOptions = {
  /** Where set-up has put CRIU. */
  criuDir: string;
  cgroups: Cgroups;
  /** Of the sandbox that is tried. */
  resources: SandboxResources;
};

/** Finds out whether this node can keep the memory of sandboxes, by doing it where that was not done since the host started. */
export async function findMemory(node: NodeContext, options: FindMemoryOptions): Promise<Memory> {
  const { layout, helper, helperBinary } = node;
  const hostOf = (criu: RestoreHost['criu']): RestoreHost => ({
    ...{ helper, helperBinary, criu, cgroups: options.cgroups },
    runDir: layout.run,
    programDir: join(layout.data, 'programs'),
    stagingDir: join(layout.data, 'restoring'),
    mountsDir: layout.mounts,
  });
  // What a crash has left.
  rmSync(join(layout.data, 'restoring'), { recursive: true, force: true });
  const found = await findMemoryKeeping({
    criuDir: options.criuDir,
    cacheFile: memoryKeepingFile(layout.data),
    async test(criu) {
      const host = hostOf(criu);
      await learnKernel(host);
      node.memory = { kept: true, host };
      await testMemoryKeeping(host, partsOf(node, options.resources), join(layout.data, 'self-test'));
    },
  });
  if (!found.possible) return { kept: false, reason: found.reason };
  const host = hostOf(found.criu);
  try {
    await learnKernel(host);
  } catch (error) {
    return { kept: false, reason: messageOf(error) };
  }
  return { kept: true, host };
}

type Tried = TestedSandbox & { blank: Blank };

/** A sandbox with nothing in its root but what every sandbox has: that is made where it is missing. */
function partsOf(node: NodeContext, resources: SandboxResources) {
  const disk = join(node.layout.disks, 'self-test.img');
  // Of the file system that layers are on: one in memory, as the skeleton is on, takes idmapped mounts since Linux 6.3 only.
  const root = join(node.layout.data, 'self-test-root');
  const layers = [root];
  rmSync(disk, { force: true });
  mkdirSync(root, { recursive: true });

  const tried = async (blank: Blank): Promise<Tried> => ({
    blank,
    source: { ...(await checkpointSource(node, blank.slot, { pid: blank.pid, disk, layers: [] })), layers },
    answers: () => agentListens(blank.namespace, blank.ended),
  });

  return {
    async start() {
      const blank = await startBlank(node, resources);
      renameSync(slotDisk(node, blank.slot), disk);
      await node.driver.giveRoot(blank.slot, blank.pid, { layers, disk: slotMountPoint(node, blank.slot) });
      return tried(blank);
    },
    async release({ blank }: Tried) {
      await blank.ended;
      blank.namespace.close();
      await node.egress.remove(blank.slot);
      await releaseSlot(node, blank.slot);
    },
    async restore(snapshot: OpenSnapshot) {
      const { bootId, controlToken } = { bootId: crypto.randomUUID(), controlToken: '' };
      const facts = { sandboxId: 'self-test', snapshot, disk, layers, resources, network: { internetAccess: false } };
      return tried(await restoreBlank(node, { ...facts, agentDir: node.agentDir, bootId, controlToken }));
    },
    async kill({ blank }: Tried) {
      await releaseBlank(node, blank);
      rmSync(disk, { force: true });
    },
  };
}
