import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../base/error.ts';
import { newUuid } from '../../base/id.ts';
import type { SandboxResources } from '../../protocol/node.ts';
import { agentListens } from '../agent-client/listens.ts';
import type { Cgroups } from '../cgroup/cgroup.ts';
import type { Driver } from '../drivers/driver.ts';
import { learnKernel, lighten, type Criu } from '../snapshot/criu.ts';
import type { Egress } from '../network/egress/egress.ts';
import { createHurry } from '../snapshot/grace-periods.ts';
import { findMemoryKeeping, memoryKeepingFile, type Later } from '../snapshot/memory-keeping.ts';
import type { LaterMeasure } from '../snapshot/later-pages.ts';
import type { OpenSnapshot, RestoreHost } from '../snapshot/restore.ts';
import { testMemoryKeeping, type SelfTestParts, type TestedSandbox } from '../snapshot/self-test.ts';
import { checkpointSource, type CheckpointSupport } from './keep/checkpoint-support.ts';
import { slotDisk, slotMountPoint } from './slot/slot-disk.ts';
import { restoreProcesses, type RestoredParts } from './start/restored.ts';
import { startStandby, type Started } from './start/standby.ts';

/** What the trial of checkpoints needs. */
type FindCheckpointSupportOptions = {
  /** Where set-up has put CRIU; undefined: it has not. */
  criuDir: string | undefined;
  cgroups: Cgroups;
  /** The driver that starts the trial sandbox; undefined: no driver of this node supports checkpoints. */
  driver: Driver | undefined;
  /** Limits of the trial sandbox. */
  resources: SandboxResources;
  /** Resolves when sandboxes can be started: trial sandboxes wait for it. */
  installed: Promise<void>;
};

/** Finds out whether this node can checkpoint sandboxes, by doing it, unless it was done since the host started. */
export async function findCheckpointSupport(
  parts: TriedParts & { helperBinary: string },
  { criuDir, cgroups, driver, resources, installed }: FindCheckpointSupportOptions,
): Promise<CheckpointSupport> {
  if (criuDir === undefined) return { supported: false, reason: 'CRIU was not set up' };
  if (!driver) return { supported: false, reason: 'no driver of this node lets its sandboxes be checkpointed' };
  const { layout, helper, helperBinary } = parts;
  const hurry = createHurry();
  const hostOf = (criu: Criu, { notLater }: Later): RestoreHost => ({
    helper,
    helperBinary,
    criu,
    cgroups,
    runDir: layout.run,
    hurry,
    programDir: join(layout.run, 'programs'),
    stagingDir: join(layout.data, 'restoring'),
    mountsDir: layout.mounts,
    canBringLater: notLater === null,
  });
  // These are copies of a program that may have changed since, and what a crash has left.
  rmSync(join(layout.run, 'programs'), { recursive: true, force: true });
  rmSync(join(layout.data, 'restoring'), { recursive: true, force: true });
  const found = await findMemoryKeeping({
    criuDir,
    cacheFile: memoryKeepingFile(layout.data),
    async test(criu) {
      await installed;
      const host = hostOf(await lighten(parts, criu), { notLater: null });
      await learnKernel(host);
      return testMemoryKeeping(host, triedSandboxes(parts, host, driver, resources), join(layout.data, 'self-test'));
    },
  });
  if (!found.possible) return { supported: false, reason: found.reason };
  try {
    const host = hostOf(await lighten(parts, found.criu), found);
    await learnKernel(host);
    return { supported: true, host };
  } catch (error) {
    return { supported: false, reason: messageOf(error) };
  }
}

/** What trial sandboxes need. */
type TriedParts = RestoredParts & { egress: Egress };

type Tried = TestedSandbox & { started: Started };

/** Sandboxes whose root contains only what every sandbox has, which is made if it is missing. */
function triedSandboxes(
  parts: TriedParts,
  host: RestoreHost,
  driver: Driver,
  resources: SandboxResources,
): SelfTestParts<Tried> {
  const { layout, egress, slotHost, processControl } = parts;
  const disk = join(layout.disks, 'self-test.img');
  // On the file system of the layers: a file system in memory, such as the skeleton's, takes idmapped mounts only
  // since Linux 6.3.
  const root = join(layout.data, 'self-test-root');
  const layers = [root];
  rmSync(disk, { force: true });
  mkdirSync(root, { recursive: true });

  const tried = (started: Started): Tried => {
    const { processes } = started;
    const diskMount = slotMountPoint(layout, processes.slot);
    return {
      started,
      source: checkpointSource(processes, { disk, diskMount, layers, volumes: [] }),
      answers: () => agentListens(processes.namespace, processes.ended),
    };
  };

  return {
    async start() {
      const started = await startStandby(parts, { driver, resources, disk: null });
      const { slot, pid } = started.processes;
      renameSync(slotDisk(layout, slot), disk);
      await driver.giveRoot(slot, pid, { layers, disk: slotMountPoint(layout, slot) });
      return tried(started);
    },
    async release({ started: { processes } }) {
      await processes.ended;
      processes.namespace.close();
      await egress.remove(processes.slot);
      await slotHost.release(processes.slot, [driver]);
    },
    async restore(snapshot: OpenSnapshot, later: LaterMeasure | undefined) {
      return tried(
        await restoreProcesses(parts, host, {
          snapshot,
          driver,
          disk,
          points: layers,
          resources,
          volumes: [],
          agentDir: parts.agentDir,
          bootId: newUuid(),
          controlToken: '',
          ...(later && { later }),
        }),
      );
    },
    kill: ({ started }) => processControl.release(started.processes),
    removeDisk: () => rmSync(disk, { force: true }),
  };
}
