import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AtollError, messageOf } from '../../base/error.ts';
import type { Log } from '../../base/log.ts';
import type { NodeVolume } from '../../protocol/volume.ts';
import type { Slot } from '../layout.ts';
import type { Helper } from '../native/helper.ts';
import { formatImage } from '../rootfs/format-image.ts';

/** How long a volume that nobody uses any more stays mounted: whoever works with its content does so in many short calls. */
const lingerMs = 3_000;
const syncTimeoutMs = 5 * 60_000;
/** The root of a new volume: every user of every sandbox may write there. */
const rootOwner = 9090;
const rootMode = 0o777;

/** A mounted volume that stays so until it is released. */
export type VolumeUse = {
  /** The volume's content, in the helper's mount namespace. */
  root: string;
  release(): void;
};

/**
 * The volumes of this node: sparse ext4 images like the disks of sandboxes, so that their size is a real limit. Each is mounted
 * once, while a sandbox or a call uses it, and shown from there in any number of sandboxes. Flushes reach the host's disk.
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

type Mounted = { users: number; ready: Promise<string>; linger?: Timer };

export function createVolumes(options: { helper: Helper; dir: string; mounts: string; log: Log }): Volumes {
  const { helper, dir, log } = options;
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(dir)) if (name.startsWith('making-')) rmSync(join(dir, name), { recursive: true, force: true });
  const mounted = new Map<string, Mounted>();
  const held = new Map<string, VolumeUse[]>();
  /** What happens to a volume's mount happens one after the other. */
  const turns = new Map<string, Promise<unknown>>();
  const imageOf = (volumeId: string) => join(dir, checked(volumeId), 'disk.img');
  const pointOf = (volumeId: string) => join(options.mounts, `volume-${volumeId}`);

  const inTurn = <T>(volumeId: string, work: () => Promise<T>): Promise<T> => {
    const turn = (turns.get(volumeId) ?? Promise.resolve()).then(work, work);
    turns.set(volumeId, turn);
    const settled = () => void (turns.get(volumeId) === turn && turns.delete(volumeId));
    turn.then(settled, settled);
    return turn;
  };
  const mount = async (volumeId: string): Promise<string> => {
    const image = imageOf(volumeId);
    if (!existsSync(image)) throw notHere(volumeId);
    mkdirSync(pointOf(volumeId), { recursive: true });
    await helper.call('disk-mount', image, pointOf(volumeId), 'durable');
    return join(pointOf(volumeId), 'data');
  };
  const unmount = async (volumeId: string): Promise<void> => {
    await helper.call('unmount', pointOf(volumeId));
    rmSync(pointOf(volumeId), { recursive: true, force: true });
  };
  const close = (volumeId: string, entry: Mounted) => {
    if (entry.users > 0 || mounted.get(volumeId) !== entry) return;
    clearTimeout(entry.linger);
    mounted.delete(volumeId);
    inTurn(volumeId, () => unmount(volumeId)).catch(error => log.error('a volume could not be unmounted', { volumeId, error: messageOf(error) }));
  };
  const begin = (volumeId: string): Mounted => {
    const entry: Mounted = { users: 0, ready: inTurn(volumeId, () => mount(volumeId)) };
    mounted.set(volumeId, entry);
    entry.ready.catch(() => void (mounted.get(volumeId) === entry && mounted.delete(volumeId)));
    return entry;
  };

  const volumes: Volumes = {
    create: (volumeId, sizeMiB) => inTurn(volumeId, async () => void (existsSync(imageOf(volumeId)) || (await make(helper, dir, volumeId, sizeMiB)))),
    async use(volumeId) {
      const entry = mounted.get(checked(volumeId)) ?? begin(volumeId);
      clearTimeout(entry.linger);
      entry.users++;
      const root = await entry.ready;
      let released = false;
      return {
        root,
        release() {
          if (released) return;
          released = true;
          if (--entry.users > 0) return;
          entry.linger = setTimeout(() => close(volumeId, entry), lingerMs);
          entry.linger.unref();
        },
      };
    },
    async hold(slot, volumeIds) {
      const uses: VolumeUse[] = [];
      held.set(slot.name, uses);
      for (const volumeId of volumeIds) uses.push(await volumes.use(volumeId));
      return uses.map(({ root }) => root);
    },
    release(slot) {
      for (const use of held.get(slot.name) ?? []) use.release();
      held.delete(slot.name);
    },
    async sync(slot) {
      for (const root of new Set((held.get(slot.name) ?? []).map(use => use.root))) {
        const { status, output } = await helper.spawn(['sync', '--file-system', root], { timeoutMs: syncTimeoutMs });
        if (status !== 0) throw new AtollError('no_space', `a volume can't be written out: ${output.trim() || `status ${status}`}`);
      }
    },
    async remove(volumeId) {
      const entry = mounted.get(checked(volumeId));
      clearTimeout(entry?.linger);
      mounted.delete(volumeId);
      await inTurn(volumeId, async () => {
        await unmount(volumeId);
        await rm(join(dir, volumeId), { recursive: true, force: true });
      });
    },
    list: () => readdirSync(dir).flatMap(name => (isVolumeId(name) ? [{ volumeId: name, createdAtMs: statSync(join(dir, name)).mtimeMs }] : [])),
    stop() {
      for (const { linger } of mounted.values()) clearTimeout(linger);
    },
  };
  return volumes;
}

/** It is there whole or not at all. */
async function make(helper: Helper, dir: string, volumeId: string, sizeMiB: number): Promise<void> {
  const temporary = await mkdtemp(join(dir, 'making-'));
  try {
    const tree = join(temporary, 'tree');
    mkdirSync(join(tree, 'data'), { recursive: true });
    chownSync(join(tree, 'data'), rootOwner, rootOwner);
    chmodSync(join(tree, 'data'), rootMode);
    await formatImage(helper, join(temporary, 'disk.img'), { sizeMiB, tree });
    rmSync(tree, { recursive: true });
    await sync(join(temporary, 'disk.img'));
    renameSync(temporary, join(dir, volumeId));
    await sync(dir);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

async function sync(path: string): Promise<void> {
  const file = await open(path, 'r');
  await file.sync().finally(() => file.close());
}

const isVolumeId = (name: string) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(name);

function checked(volumeId: string): string {
  if (!isVolumeId(volumeId)) throw notHere(volumeId);
  return volumeId;
}

function notHere(volumeId: string): AtollError {
  return new AtollError('not_found', `volume ${volumeId} is not on this node`);
}
