import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { withoutPlaces } from '../../base/process/without-places.ts';
import { KeyedMutex } from '../../base/concurrency/keyed-mutex.ts';
import type { Log } from '../../base/telemetry/log.ts';
import { syncPath } from '../../base/sync.ts';
import type { VolumeState } from '../../protocol/cluster.ts';
import type { NodeVolume } from '../../protocol/volume.ts';
import type { Slot } from '../layout.ts';
import type { Helper } from '../native/helper.ts';
import { copyImage } from '../disks/copy-image.ts';
import { formatImage } from '../disks/format-image.ts';
import { HeldVolumes } from './held-volumes.ts';
import { MountedVolumes, type VolumeUse } from './mounted-volumes.ts';

const volumeImage = 'disk.img';
/** The time of this file says when the volume was last written to, or was about to be. */
const changedMark = 'changed';
/** The unit of `st_blocks`, whatever the file system's blocks are. Source: stat(2). */
const blockBytes = 512;
const syncTimeoutMs = 5 * 60_000;
/** The root of a new volume: every user of every sandbox may write there. */
const rootOwner = 9090;
const rootMode = 0o777;

/**
 * The volumes of this node: sparse ext4 images like the disks of sandboxes, so that their size is a real limit. Each
 * is mounted once, while a sandbox or a call uses it, and shown from there in any number of sandboxes. Flushes reach
 * the host's disk.
 */
export type Volumes = {
  /** Makes an empty volume. An existing one stays as it is. */
  create(volumeId: string, sizeMiB: number): Promise<void>;
  /** Fails with `not_found`. */
  use(volumeId: string): Promise<VolumeUse>;
  /**
   * Carries out work that makes entries in volumes and other things, but not while one of the volumes is copied: the
   * work would wait with all that it holds. Fails with `not_found`.
   */
  change<T>(volumeIds: readonly string[], work: () => Promise<T>): Promise<T>;
  /** Uses volumes until the slot is released, and answers their roots. */
  hold(slot: Slot, volumeIds: string[]): Promise<string[]>;
  release(slot: Slot): void;
  /** Puts everything that was written to the slot's volumes on the host's disk. */
  sync(slot: Slot): Promise<void>;
  /** Deletes a volume that no sandbox has. Readers and writers of it are left with an orphan. */
  remove(volumeId: string): Promise<void>;
  list(): NodeVolume[];
  /** The bytes that images take on the host's disk, by volume; space of deleted files was given back. */
  taken(volumeIds: readonly string[]): Promise<Record<string, number>>;
  /** Records that a volume is written to. */
  touch(volumeId: string): void;
  states(): VolumeState[];
  /** Unmounts a volume; nobody can use it before `unseal`. Fails with `conflict` while it is used, `not_found`. */
  seal(volumeId: string): Promise<void>;
  unseal(volumeId: string): void;
  /** Where a volume's image is. */
  folderOf(volumeId: string): string;
  /** Copies the image of a volume, which may be in use, to a folder: its state at one moment. */
  copy(volumeId: string, folder: string): Promise<void>;
  /** Makes a volume of a folder with an image; it replaces the volume that was here. */
  arrive(volumeId: string, folder: string): Promise<void>;
  /** Leaves everything as it is: the mounts end with the helper. */
  stop(): void;
};

/** Opens the volumes in `dir`. Removes what a crash has left half made. */
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
  const touch = (volumeId: string) => mark(join(dir, volumeId));
  // Awaited here: a promise that fails at once needs a handler at once, or the runtime counts it as unhandled.
  const use = async (volumeId: string) => await mounted.use(checked(volumeId));
  const held = new HeldVolumes(use, touch);

  return {
    create: (volumeId, sizeMiB) =>
      changing.run(
        volumeId,
        async () => void (existsSync(imageOf(volumeId)) || (await make(helper, dir, volumeId, sizeMiB))),
      ),
    use,
    change: async (volumeIds, work) => await mounted.change(volumeIds.map(checked), work),
    hold: (slot, volumeIds) => held.hold(slot, volumeIds),
    release: slot => held.release(slot),
    async sync(slot) {
      for (const root of new Set(held.roots(slot))) await syncVolume(helper, root);
    },
    remove: async volumeId =>
      mounted.remove(checked(volumeId), () => rm(join(dir, volumeId), { recursive: true, force: true })),
    list: () =>
      readdirSync(dir).flatMap(name => {
        if (!isVolumeId(name)) return [];
        const image = statSync(imageOf(name), { throwIfNoEntry: false });
        const createdAtMs = statSync(join(dir, name)).mtimeMs;
        return [{ volumeId: name, createdAtMs, ...(image && { sizeMiB: Math.round(image.size / 2 ** 20) }) }];
      }),
    taken: volumeIds => takenBytes(volumeIds.filter(isVolumeId).map(volumeId => [volumeId, imageOf(volumeId)])),
    touch,
    states() {
      const inSandboxes = held.all();
      return this.list().map(({ volumeId }) => stateOf(join(dir, volumeId), volumeId, inSandboxes.has(volumeId)));
    },
    async seal(volumeId) {
      if (!existsSync(imageOf(volumeId))) throw notHere(volumeId);
      await mounted.seal(volumeId);
    },
    unseal: volumeId => mounted.unseal(volumeId),
    folderOf: volumeId => join(dir, checked(volumeId)),
    async copy(volumeId, folder) {
      const from = imageOf(volumeId);
      if (!existsSync(from)) throw notHere(volumeId);
      const copy = { from, to: join(folder, volumeImage), what: 'a volume', kind: 'release' } as const;
      await mounted.still(volumeId, () => copyImage(helper, copy));
    },
    async arrive(volumeId, folder) {
      await syncPath(join(folder, volumeImage));
      await mounted.remove(checked(volumeId), async () => {
        await rm(join(dir, volumeId), { recursive: true, force: true });
        renameSync(folder, join(dir, volumeId));
        await syncPath(dir);
      });
    },
    stop: () => mounted.stop(),
  };
}

async function syncVolume(helper: Helper, root: string): Promise<void> {
  const { status, output } = await helper.spawn(['sync', '--file-system', root], { timeoutMs: syncTimeoutMs });
  if (status !== 0)
    throw new AtollError('no_space', `a volume can't be written out: ${withoutPlaces(output) || `status ${status}`}`);
}

/** The bytes that images take, by the names given for them; missing images are left out. */
async function takenBytes(images: readonly [name: string, path: string][]): Promise<Record<string, number>> {
  const found = await Promise.all(
    images.map(async ([name, path]) => {
      const image = await stat(path).catch(() => null);
      return image ? [[name, image.blocks * blockBytes] as const] : [];
    }),
  );
  return Object.fromEntries(found.flat());
}

/** Records that the volume in a folder is written to. */
function mark(folder: string): void {
  const [path, now] = [join(folder, changedMark), new Date()];
  if (existsSync(path)) utimesSync(path, now, now);
  else if (existsSync(folder)) writeFileSync(path, '', { mode: 0o600 });
}

/**
 * While a sandbox has it, the image's time counts, because each write changes it. Otherwise it does not, because
 * reading by the API changes it, too.
 */
function stateOf(folder: string, volumeId: string, isInSandbox: boolean): VolumeState {
  const timeOf = (name: string) => statSync(join(folder, name), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const marked = timeOf(changedMark);
  return { volumeId, isInSandbox, changedAtMs: isInSandbox ? Math.max(marked, timeOf(volumeImage)) : marked };
}

/** The volume appears complete or not at all. */
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
    writeFileSync(join(temporary, changedMark), '', { mode: 0o600 });
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
