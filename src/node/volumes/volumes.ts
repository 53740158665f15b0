import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { KeyedMutex } from '../../base/concurrency/keyed-mutex.ts';
import type { Log } from '../../base/telemetry/log.ts';
import { syncPath } from '../../base/sync.ts';
import type { NodeVolume } from '../../protocol/volume.ts';
import type { Slot } from '../layout.ts';
import type { Helper } from '../native/helper.ts';
import { formatImage } from '../disks/format-image.ts';
import { MountedVolumes, type VolumeUse } from './mounted-volumes.ts';

const volumeImage = 'disk.img';
const syncTimeoutMs = 5 * 60_000;
/** The root of a new volume: every user of every sandbox may write there. */
const rootOwner = 9090;
const rootMode = 0o777;

/**
 * The volumes of this node: sparse ext4 images like the disks of sandboxes, so that their size is a real limit. Each is
 * mounted once, while a sandbox or a call uses it, and shown from there in any number of sandboxes. Flushes reach the
 * host's disk.
 */
export type Volumes = {
  /** Makes an empty volume. One that is here stays as it is. */
  create(volumeId: string, sizeMiB: number): Promise<void>;
  /** Fails with `not_found`. */
  use(volumeId: string): Promise<VolumeUse>;
  /** Uses volumes until the slot is released, and answers their roots. */
  hold(slot: Slot, volumeIds: string[]): Promise<string[]>;
  release(slot: Slot): void;
  /** Puts all that was written to the slot's volumes on the host's disk. */
  sync(slot: Slot): Promise<void>;
  /** Deletes a volume that no sandbox has. What reads or writes it still has an orphan in its hands. */
  remove(volumeId: string): Promise<void>;
  list(): NodeVolume[];
  /** Leaves everything as it is: the helper's mounts go with it. */
  stop(): void;
};

/** Opens the volumes in `dir`. What a crash has left half made is removed. */
export function createVolumes(options: { helper: Helper; dir: string; mounts: string; log: Log }): Volumes {
  const { helper, dir, log } = options;
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(dir))
    if (name.startsWith('making-')) rmSync(join(dir, name), { recursive: true, force: true });
  const imageOf = (volumeId: string) => join(dir, checked(volumeId), volumeImage);
  /** Changes of a volume run one at a time. */
  const changing = new KeyedMutex<string>();
  const mounted = new MountedVolumes({ helper, mounts: options.mounts, changing, log }, volumeId => {
    const image = imageOf(volumeId);
    if (!existsSync(image)) throw notHere(volumeId);
    return image;
  });
  const held = new Map<string, VolumeUse[]>();

  return {
    create: (volumeId, sizeMiB) =>
      changing.run(
        volumeId,
        async () => void (existsSync(imageOf(volumeId)) || (await make(helper, dir, volumeId, sizeMiB))),
      ),
    use: async volumeId => mounted.use(checked(volumeId)),
    async hold(slot, volumeIds) {
      const uses: VolumeUse[] = [];
      held.set(slot.name, uses);
      for (const volumeId of volumeIds) uses.push(await mounted.use(checked(volumeId)));
      return uses.map(({ root }) => root);
    },
    release(slot) {
      for (const use of held.get(slot.name) ?? []) use.release();
      held.delete(slot.name);
    },
    async sync(slot) {
      for (const root of new Set((held.get(slot.name) ?? []).map(use => use.root))) {
        const { status, output } = await helper.spawn(['sync', '--file-system', root], { timeoutMs: syncTimeoutMs });
        if (status !== 0)
          throw new AtollError('no_space', `a volume can't be written out: ${output.trim() || `status ${status}`}`);
      }
    },
    remove: async volumeId =>
      mounted.remove(checked(volumeId), () => rm(join(dir, volumeId), { recursive: true, force: true })),
    list: () =>
      readdirSync(dir).flatMap(name =>
        isVolumeId(name) ? [{ volumeId: name, createdAtMs: statSync(join(dir, name)).mtimeMs }] : [],
      ),
    stop: () => mounted.stop(),
  };
}

/** It is there whole or not at all. */
async function make(helper: Helper, dir: string, volumeId: string, sizeMiB: number): Promise<void> {
  const temporary = await mkdtemp(join(dir, 'making-'));
  try {
    const tree = join(temporary, 'tree');
    mkdirSync(join(tree, 'data'), { recursive: true });
    chownSync(join(tree, 'data'), rootOwner, rootOwner);
    chmodSync(join(tree, 'data'), rootMode);
    await formatImage(helper, join(temporary, volumeImage), { sizeMiB, tree });
    rmSync(tree, { recursive: true });
    await syncPath(join(temporary, volumeImage));
    renameSync(temporary, join(dir, volumeId));
    await syncPath(dir);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

const isVolumeId = (name: string) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(name);

function checked(volumeId: string): string {
  if (!isVolumeId(volumeId)) throw notHere(volumeId);
  return volumeId;
}

function notHere(volumeId: string): AtollError {
  return new AtollError('not_found', `volume ${volumeId} is not on this node`);
}
