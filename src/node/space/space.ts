import { setImmediate } from 'node:timers/promises';
import { freeBytesOf, requireRoom } from '../../base/disk-room.ts';
import type { Log } from '../../base/telemetry/log.ts';
import { onceInARow } from '../../base/telemetry/once-in-a-row.ts';
import type { SpaceUsage } from '../../protocol/node-usage.ts';
import { createBallast } from './ballast.ts';
import { DiskRooms } from './hold.ts';
import { Reservations, type Room } from './reservations.ts';
import { fillOf, mountedDisks, owedBytes, type DiskFill, type MountedDisk } from './mounted-disks.ts';

/** Time between two looks at the disk; less if it is nearly full, more if nobody could fill it until the next look. */
const lookMs = { near: 200, far: 1_000, remoteMax: 8_000 } as const;
/** Below this share of the reserve, running disks get no new blocks; above the other share, they get them again. */
const holdShare = 1 / 2;
const releaseShare = 3 / 4;
/** No single disk can take the host's disk below this share between two looks, however fast it writes. */
const floorShare = 1 / 4;
/** How many disks are looked at in a row, before other work gets its turn in this thread. */
const disksInARow = 64;
/** Below this multiple of the reserve the disk is nearly full. */
const nearFactor = 4;
/** With this many bytes more than that, nobody fills it before the next look. */
const remoteBytes = 32 * 2 ** 30;
/** More than all together can write in a millisecond: 8 GiB a second. */
const filledPerMs = (8 * 2 ** 30) / 1000;

/**
 * The room on the host's disk. Disks of sandboxes are sparse: together they may write more than there is. Whatever
 * makes something new asks here first, and growing disks are stopped before the host is full.
 */
export type Space = {
  /** Bytes that are free and not promised to anybody. */
  freeBytes(): number;
  /** Fails with `no_space`, with the figures, if `what` would take from the reserve. */
  require(what: string, bytes?: number): void;
  /**
   * The same, and reserves this many bytes until the answer is disposed of. `keptBackBytes`: what must be left instead
   * of the reserve.
   */
  reserve(what: string, bytes: number, keptBackBytes?: number): Room;
  /** Aborts, with `no_space`, when half of the reserve is gone: for long work that writes. */
  signal(): AbortSignal;
  facts(): SpaceUsage;
  stop(): Promise<void>;
};

/** What is watched, and who is notified. */
type SpaceOptions = {
  dataDir: string;
  /** Where disks are mounted, in the mount namespace of the process `mountsPid`. */
  mounts: string;
  mountsPid: number;
  reserveBytes: number;
  /** Says which image is mounted where, as of now. */
  images(): (point: string) => string | undefined;
  log: Log;
  /** Called when disks are held or released. */
  onHeld(held: boolean): void;
  /** Called with a disk whose file system has given up, until the answer is true: then somebody knows of it. */
  onFailed(disk: MountedDisk): boolean;
};

/** Begins to watch the room on the disk of a data directory. */
export function watchSpace(options: SpaceOptions): Space {
  const { dataDir, mounts, mountsPid, reserveBytes, log } = options;
  const root = `/proc/${mountsPid}/root`;
  const ballast = createBallast(dataDir);
  const failed = new FailedDisks(options.onFailed);
  const rooms = new DiskRooms();
  let owed = 0;
  let held = false;
  let low = new AbortController();
  let stopped = false;
  let wake = () => {};
  const reservations = new Reservations();
  /** Promised room is not taken yet, so it holds no disk. */
  const untaken = () => freeBytesOf(dataDir) - owed;
  const free = () => untaken() - reservations.bytes;

  const logged = onceInARow(error => log.error('the room on the disk could not be looked at or held', { error }));

  const look = async () => {
    ballast.follow(freeBytesOf(dataDir));
    const disks = mountedDisks(mountsPid, mounts);
    const known: { disk: MountedDisk; fill: DiskFill; owedBytes: number }[] = [];
    const imageOf = options.images();
    await each(disks, logged, disk => {
      const fill = fillOf(disk, root);
      const image = imageOf(disk.point);
      if (fill) known.push({ disk, fill, owedBytes: image === undefined ? 0 : owedBytes(fill, image) });
    });
    owed = known.reduce((sum, disk) => sum + Math.max(0, disk.owedBytes), 0);
    failed.follow(disks);
    const left = untaken();
    const next = held ? left < reserveBytes * releaseShare : left < reserveBytes * holdShare;
    // Every look sets all disks: one may have been mounted since, and another run of the platform may have held it.
    const room = Math.max(1, left - reserveBytes * floorShare);
    await each(known, logged, ({ disk, fill, owedBytes }) => {
      if (!disk.failed) rooms.set(disk, fill, next ? 0 : room + Math.max(0, -owedBytes));
    });
    if (next !== held) change(next, left);
  };
  const change = (next: boolean, left: number) => {
    held = next;
    logHeld(log, next, { freeBytes: left, reserveBytes });
    if (next) low.abort(noRoomError({ freeBytes: left, reserveBytes }));
    else low = new AbortController();
    options.onHeld(next);
  };
  const loop = async () => {
    while (!stopped) {
      await look().catch(logged);
      if (stopped) return;
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, pauseMs(untaken() - reserveBytes * nearFactor));
        wake = () => (clearTimeout(timer), resolve());
      });
    }
  };
  // The first look comes only once the caller is complete, too: the look asks it for the images.
  const ended = Promise.resolve().then(loop);
  return {
    freeBytes: free,
    require: (what, bytes = 0) => requireRoom(what, { freeBytes: free(), reserveBytes, bytes }),
    reserve(what, bytes, keptBackBytes = reserveBytes) {
      requireRoom(what, { freeBytes: free(), reserveBytes: keptBackBytes, bytes });
      return reservations.add(bytes);
    },
    signal: () => low.signal,
    facts: () => ({ freeBytes: freeBytesOf(dataDir), owedBytes: owed, reserveBytes, held, failedDisks: failed.count }),
    async stop() {
      stopped = true;
      wake();
      await ended;
    },
  };
}

/** Time until the next look, given how many bytes the disk is from being nearly full. */
function pauseMs(untilNearBytes: number): number {
  if (untilNearBytes < 0) return lookMs.near;
  if (untilNearBytes < remoteBytes) return lookMs.far;
  return Math.min(untilNearBytes / filledPerMs, lookMs.remoteMax);
}

/** Works on the disks one after another: a failure for one does not keep the others from being looked at. */
async function each<T>(disks: T[], onError: (error: unknown) => void, work: (disk: T) => void): Promise<void> {
  for (const [index, disk] of disks.entries()) {
    if (index % disksInARow === disksInARow - 1) await setImmediate();
    try {
      work(disk);
    } catch (error) {
      onError(error);
    }
  }
}

function logHeld(
  log: Log,
  held: boolean,
  { freeBytes, reserveBytes }: { freeBytes: number; reserveBytes: number },
): void {
  if (held)
    log.error('the disk is nearly full: running sandboxes can’t write anything new until there is room', {
      freeBytes,
      reserveBytes,
    });
  else log.warn('there is room on the disk again: running sandboxes can write', { freeBytes });
}

/** The error that aborts work that writes. */
function noRoomError(room: { freeBytes: number; reserveBytes: number }): unknown {
  try {
    requireRoom('it', room);
    return undefined;
  } catch (error) {
    return error;
  }
}

/** Disks whose file system has given up, each reported until somebody knows. */
class FailedDisks {
  readonly #report: (disk: MountedDisk) => boolean;
  /** By mount point; true: somebody knows. */
  readonly #known = new Map<string, boolean>();

  constructor(report: (disk: MountedDisk) => boolean) {
    this.#report = report;
  }

  get count(): number {
    return this.#known.size;
  }

  follow(disks: MountedDisk[]): void {
    const now = disks.filter(disk => disk.failed);
    for (const point of [...this.#known.keys()]) if (!now.some(disk => disk.point === point)) this.#known.delete(point);
    for (const disk of now) this.#known.set(disk.point, (this.#known.get(disk.point) ?? false) || this.#report(disk));
  }
}
