import { existsSync, mkdirSync, readdirSync, rmSync, statSync, utimesSync } from 'node:fs';
import { uptime } from 'node:os';
import { join } from 'node:path';
import { AtollError } from '../../../base/error.ts';
import type { KeyedMutex } from '../../../base/concurrency/keyed-mutex.ts';
import { unlessAborted } from '../../../base/concurrency/unless-aborted.ts';
import { sha256Hex } from '../../../base/crypto/secret.ts';
import type { DockerMount } from '../../../protocol/build.ts';
import type { Layout } from '../../layout.ts';
import { pathInHelper } from '../../native/helper.ts';
import { repairDisk } from '../../sandbox/keep/disk.ts';
import type { Build } from '../build.ts';

/** Size of the disk of one cache directory, MiB; it takes only the room of its content. */
const cacheMiB = 10_240;
const perTeamMax = 16;
const teamCharacters = 16;
/** The part of a disk that builds see: of its two directories, the one that starts empty. */
const shown = 'work';

/** Cache directories in use: where each is, and where a command sees it. Disposal frees them for the next build. */
type CacheMounts = AsyncDisposable & { binds: { source: string; target: string }[] };

/** Where the disks of cache mounts are, one file each. */
export function cacheMountsDirOf({ data }: Pick<Layout, 'data'>): string {
  return join(data, 'build-mounts');
}

/**
 * Opens the directories of `RUN --mount=type=cache`: each is a disk of its own, kept for later builds of the same
 * team. One build at a time uses a directory; the others wait. Mounts of one ID show the same directory.
 */
export async function openCacheMounts(
  build: DiskWork & Pick<Build, 'request' | 'cacheLocks' | 'layout' | 'signal'>,
  mounts: DockerMount[],
): Promise<CacheMounts> {
  const { request } = build;
  await using opened = new AsyncDisposableStack();
  const binds: CacheMounts['binds'] = [];
  const byName = Map.groupBy(
    mounts.filter(mount => mount.kind === 'cache'),
    ({ id }) => nameOf(request.teamId, id),
  );
  // All builds open them in the same order, so that two never wait for each other, and each once, so that none waits
  // for itself.
  for (const [name, shownAt] of [...byName].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    opened.use(await lock(build, name));
    const dir = cacheMountsDirOf(build.layout);
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    const image = join(dir, `${name}.img`);
    const point = join(build.layout.mounts, `cache-${name}`);
    {
      // One at a time of a team: others would not see the directory that is being made, and take its room.
      using _ = await lock(build, teamOf(name));
      makeRoomFor(dir, name, build.cacheLocks);
      await openDisk(build, image, point);
    }
    opened.defer(() => build.disks.close(point));
    // Marks it as used now, whatever is written there.
    utimesSync(image, new Date(), new Date());
    binds.push(...shownAt.map(({ target }) => ({ source: join(point, shown), target })));
  }
  const disposal = opened.move();
  return { binds, [Symbol.asyncDispose]: () => disposal.disposeAsync() };
}

/** Waits for a directory, or the turn of its team, until the build is cancelled. */
async function lock({ cacheLocks, signal }: Pick<Build, 'cacheLocks' | 'signal'>, name: string): Promise<Disposable> {
  const locked = cacheLocks.lock(name);
  try {
    return await unlessAborted(locked, signal, 'nobody waits for the cache directory any more');
  } catch (error) {
    void locked.then(late => late[Symbol.dispose]());
    throw error;
  }
}

type DiskWork = Pick<Build, 'disks' | 'helper' | 'nodeLog'>;

/**
 * Opens the disk of a cache directory, or makes it. A cache may be empty at any time: a disk that a loss of power has
 * left unusable is replaced by an empty one.
 */
async function openDisk(build: DiskWork, image: string, point: string): Promise<void> {
  if (existsSync(image)) {
    if (await isOpened(build, image, point)) return;
    build.nodeLog.warn('the disk of a cache directory is damaged and begins anew', { image });
    rmSync(image);
  }
  await build.disks.create(image, cacheMiB, point);
}

/** The helper's error for an image that holds no file system, or none that the kernel accepts. */
const isNoDisk = /^disk-mount: mount ext4/;

/** Opens a disk and answers true; false if it can't be used, even after a repair. */
async function isOpened({ disks, helper, nodeLog }: DiskWork, image: string, point: string): Promise<boolean> {
  try {
    // Only the kernel may write to a disk that is still mounted somewhere. A disk that was last used before the host's
    // last start may have been in use when the power went.
    if (!(await disks.used(image))) {
      const all = statSync(image).mtimeMs < Date.now() - uptime() * 1000;
      await repairDisk({ helper, log: nodeLog }, image, { all });
    }
    await disks.open(image, point);
  } catch (error) {
    const isDamage =
      error instanceof AtollError && (error.detail === 'sandbox_state_damaged' || isNoDisk.test(error.message));
    if (!isDamage) throw error;
    return false;
  }
  if (existsSync(pathInHelper({ helper }, join(point, shown)))) return true;
  await disks.close(point);
  return false;
}

/** A name that begins with what all of a team's names have in common. */
function nameOf(teamId: string, id: string): string {
  return sha256Hex(teamId).slice(0, teamCharacters) + sha256Hex(JSON.stringify([teamId, id])).slice(0, 32);
}

const teamOf = (name: string) => name.slice(0, teamCharacters);

/**
 * When a team has too many directories, removes the one that was unused for the longest. Errors: `no_space` if all are
 * in use.
 */
function makeRoomFor(dir: string, name: string, inUse: KeyedMutex<string>): void {
  const others = readdirSync(dir).filter(other => other.startsWith(teamOf(name)) && other !== `${name}.img`);
  if (others.length < perTeamMax) return;
  const idle = others
    .filter(other => !inUse.has(other.slice(0, -'.img'.length)))
    .map(other => ({ path: join(dir, other), usedMs: statSync(join(dir, other)).mtimeMs }));
  const [oldest] = idle.sort((a, b) => a.usedMs - b.usedMs);
  if (!oldest)
    throw new AtollError(
      'no_space',
      `the team’s builds use ${others.length} cache directories, and a team may have ${perTeamMax}: use one of ` +
        'their IDs',
    );
  rmSync(oldest.path, { force: true });
}
