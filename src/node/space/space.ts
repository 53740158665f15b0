import { messageOf } from '../../base/error.ts';
import { freeBytesOf, requireRoom } from '../../base/disk-room.ts';
import type { Log } from '../../base/log.ts';
import type { SpaceUsage } from '../../protocol/node.ts';
import { createBallast } from './ballast.ts';
import { setHeld } from './hold.ts';
import { mountedDisks, owedBytes, type MountedDisk } from './mounted-disks.ts';

/** Between two looks at the disk; sooner where it is nearly full. */
const lookMs = { far: 1_000, near: 200 } as const;
/** Below this share of the reserve, running disks take no new blocks; above the other, they do again. */
const holdShare = 1 / 2;
const releaseShare = 3 / 4;
/** From this multiple of the reserve on, a look a second is enough. */
const nearFactor = 4;

/**
 * The room on the host's disk. Disks of sandboxes are sparse: what all may write together is more than there is. Whatever makes
 * something new asks here first, and disks that grow are stopped before the host is full.
 */
export type Space = {
  /** What is free and nobody's yet, bytes. */
  freeBytes(): number;
  /** Fails with `no_space`, with the figures, where `what` would take from the reserve. */
  require(what: string, bytes?: number): void;
  /** Aborted, with `no_space`, when the reserve is half gone: for long work that writes. */
  signal(): AbortSignal;
  facts(): SpaceUsage;
  stop(): Promise<void>;
};

export type SpaceOptions = {
  dataDir: string;
  /** Where disks are mounted, in the mount namespace of the process `mountsPid`. */
  mounts: string;
  mountsPid: number;
  reserveBytes: number;
  /** Which image is mounted where, as of now. */
  images(): (point: string) => string | undefined;
  log: Log;
  /** Told when disks are held or released, and of each disk once whose file system has given up. */
  onHeld(held: boolean): void;
  onFailed(disk: MountedDisk): void;
};

export function watchSpace(options: SpaceOptions): Space {
  const { dataDir, mounts, mountsPid, reserveBytes, log } = options;
  const root = `/proc/${mountsPid}/root`;
  const ballast = createBallast(dataDir);
  const failed = new Set<string>();
  let owed = 0;
  let held = false;
  let low = new AbortController();
  let stopped = false;
  let wake = () => {};
  const free = () => freeBytesOf(dataDir) - owed;

  let problem = '';
  /** Says what could not be done, each thing once in a row. */
  const told = <T>(instead: T) => (error: unknown) => {
    if (problem !== messageOf(error)) log.error('the room on the disk could not be looked at or held', { error: (problem = messageOf(error)) });
    return instead;
  };

  const look = async () => {
    ballast.follow(freeBytesOf(dataDir));
    const disks = mountedDisks(mountsPid, mounts);
    let sum = 0;
    // One that can't be looked at keeps nobody from looking at the others.
    const imageOf = options.images();
    for (const disk of disks) {
      const image = imageOf(disk.point);
      if (image !== undefined) sum += await owedBytes(disk, root, image).catch(told(0));
    }
    owed = sum;
    noteFailed(disks);
    const left = free();
    const next = held ? left < reserveBytes * releaseShare : left < reserveBytes * holdShare;
    // All each time: a disk may have been mounted since, and another run of the platform may have held it.
    for (const disk of disks) if (!disk.failed) await setHeld(disk, root, next).catch(told(undefined));
    if (next !== held) change(next, left);
  };
  const noteFailed = (disks: MountedDisk[]) => {
    for (const disk of disks) if (disk.failed && !failed.has(disk.point)) options.onFailed(disk);
    failed.clear();
    for (const { point, failed: isFailed } of disks) if (isFailed) failed.add(point);
  };
  const change = (next: boolean, left: number) => {
    held = next;
    if (next) log.error('the disk is nearly full: running sandboxes can’t write anything new until there is room', { freeBytes: left, reserveBytes });
    else log.warn('there is room on the disk again: running sandboxes can write', { freeBytes: left });
    try {
      if (next) requireRoom('it', { freeBytes: left, reserveBytes });
    } catch (error) {
      low.abort(error);
    }
    if (!next) low = new AbortController();
    options.onHeld(next);
  };
  const loop = async () => {
    while (!stopped) {
      await look().catch(told(undefined));
      if (stopped) return;
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, free() < reserveBytes * nearFactor ? lookMs.near : lookMs.far);
        wake = () => (clearTimeout(timer), resolve());
      });
    }
  };
  // The first look comes when whoever starts this is made, too: it asks for their images.
  const ended = Promise.resolve().then(loop);
  return {
    freeBytes: free,
    require: (what, bytes = 0) => requireRoom(what, { freeBytes: free(), reserveBytes, bytes }),
    signal: () => low.signal,
    facts: () => ({ freeBytes: freeBytesOf(dataDir), owedBytes: owed, reserveBytes, held, failedDisks: failed.size }),
    async stop() {
      stopped = true;
      wake();
      await ended;
    },
  };
}
