import { existsSync, linkSync, mkdirSync, readdirSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { SingleFlight } from '../../base/concurrency/single-flight.ts';
import { AtollError } from '../../base/error.ts';
import { syncPath } from '../../base/sync.ts';
import { nodeFull } from '../../protocol/no-room.ts';
import { HelperError } from '../native/helper-process.ts';
import type { Helper } from '../native/helper.ts';
import { formatImage } from './format-image.ts';

/**
 * Disks of sandboxes: sparse ext4 images, so that the limit is real (`ENOSPC`, and `df` shows it) on any host. An
 * empty formatted image of each size is made once; a new disk is a copy of its few blocks with data.
 */
export type Disks = {
  /** Makes the disk and answers where it is mounted in the helper's namespace. */
  create(image: string, sizeMiB: number, mountPoint: string): Promise<void>;
  /**
   * Mounts an existing disk by a name like its mount point's, which is then removed: the kernel shows everybody on the
   * host the name by which a disk was opened, and its own name is in the folder of a sandbox, whose ID may be a
   * credential.
   */
  open(image: string, mountPoint: string): Promise<void>;
  /** Renames a disk; the kernel goes on showing the name that it was opened by. */
  give(image: string, to: string): void;
  /** Whether a disk is mounted anywhere. */
  used(image: string): Promise<boolean>;
  /** Unmounts a disk; its image stays. */
  close(mountPoint: string): Promise<void>;
};

/** Contents of files by their path in a sandbox's root. */
type DiskFiles = Record<string, string>;

/** Empty disks, and those of slots, which adoption looks at. All others are temporary and left by a crash. */
const lasting = /^(empty-.*|s\d+)\.img$/;

/** `files`: what every new disk already holds in the sandbox's root, by path, e.g. its resolver configuration. */
export function createDisks(options: { helper: Helper; dir: string; files: DiskFiles }): Disks {
  const { helper, dir } = options;
  mkdirSync(dir, { recursive: true });
  for (const name of readdirSync(dir)) if (!lasting.test(name)) rmSync(join(dir, name), { recursive: true });
  const content = Bun.hash(JSON.stringify(options.files)).toString(16);
  const making = new SingleFlight<number, string>();
  const empty = (sizeMiB: number): Promise<string> =>
    making.run(sizeMiB, () =>
      makeEmpty(helper, dir, join(dir, `empty-${sizeMiB}-${content}.img`), sizeMiB, options.files),
    );

  return {
    async create(image, sizeMiB, mountPoint) {
      await helper.call('disk-create', { from: await empty(sizeMiB), to: image });
      await this.open(image, mountPoint);
    },
    async open(image, mountPoint) {
      const alias = join(dir, `${basename(mountPoint)}.img`);
      if (image === alias) return mount(helper, image, mountPoint);
      rmSync(alias, { force: true });
      linkSync(image, alias);
      await mount(helper, alias, mountPoint).finally(() => rmSync(alias, { force: true }));
    },
    give(image, to) {
      linkSync(image, to);
      unlinkSync(image);
    },
    used: async image => (await helper.call('disk-used', { image })).used,
    async close(mountPoint) {
      await helper.call('unmount', { at: mountPoint });
    },
  };
}

/** The helper's error when no loop device is available. */
const lacksDevice = /^disk-mount: (loop device|\/dev\/loop-control): /;

/** Throws `unavailable` if the kernel has no device for another disk: then this machine is full. */
async function mount(helper: Helper, image: string, mountPoint: string): Promise<void> {
  try {
    await helper.call('disk-mount', { image, at: mountPoint });
  } catch (error) {
    if (!(error instanceof HelperError) || !lacksDevice.test(error.message)) throw error;
    throw new AtollError('unavailable', `this node has no loop device for another disk: ${error.message}`, {
      detail: nodeFull,
      cause: error,
    });
  }
}

async function makeEmpty(
  helper: Helper,
  dir: string,
  path: string,
  sizeMiB: number,
  files: DiskFiles,
): Promise<string> {
  if (existsSync(path)) return path;
  const temporary = await mkdtemp(join(dir, 'making-'));
  try {
    const tree = join(temporary, 'tree');
    for (const name of ['upper', 'work']) mkdirSync(join(tree, name), { recursive: true });
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(join(tree, 'upper', name, '..'), { recursive: true });
      writeFileSync(join(tree, 'upper', name), text, { mode: 0o644 });
    }
    const image = join(temporary, 'image');
    await formatImage(helper, image, { sizeMiB, tree });
    // From now on its name means that it is complete, even after a loss of power.
    await syncPath(image);
    renameSync(image, path);
    await syncPath(dir);
    return path;
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}
