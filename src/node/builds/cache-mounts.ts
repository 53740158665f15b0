import { existsSync, mkdirSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { sha256Hex } from '../../base/secret.ts';
import type { DockerMount } from '../../protocol/build.ts';
import type { NodeContext } from '../context.ts';
import type { BuildContext } from './build-context.ts';

/** Disk of one cache directory, MiB; it takes what is in it. */
const cacheMiB = 10_240;

export type CacheMounts = AsyncDisposable & { binds: { source: string; target: string }[] };

/** Where the disks of cache mounts are, one file each. */
export function cacheMountsDirOf(node: NodeContext): string {
  return join(node.layout.data, 'build-mounts');
}

/**
 * Opens the directories of `RUN --mount=type=cache`: each is a disk of its own, kept for later builds of the same team.
 * One build at a time uses it; the others wait.
 */
export async function openCacheMounts(context: BuildContext, mounts: DockerMount[]): Promise<CacheMounts> {
  const { node, request, cacheLocks } = context;
  await using opened = new AsyncDisposableStack();
  const binds: CacheMounts['binds'] = [];
  // In one order for all builds: two of them never wait for each other.
  for (const { target, id } of mounts.filter(mount => mount.kind === 'cache').sort((a, b) => (a.id < b.id ? -1 : 1))) {
    const name = sha256Hex(JSON.stringify([request.teamId, id])).slice(0, 32);
    opened.use(await lock(cacheLocks, name));
    const dir = cacheMountsDirOf(node);
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    const image = join(dir, `${name}.img`);
    const point = join(node.layout.mounts, `cache-${name}`);
    if (existsSync(image)) await node.disks.open(image, point);
    else await node.disks.create(image, cacheMiB, point);
    opened.defer(() => node.disks.close(point));
    // Used now, whatever is written there.
    utimesSync(image, new Date(), new Date());
    // Of a disk's two directories, the empty one.
    binds.push({ source: join(point, 'work'), target });
  }
  const disposal = opened.move();
  return { binds, [Symbol.asyncDispose]: () => disposal.disposeAsync() };
}

async function lock(locks: Map<string, Promise<void>>, name: string): Promise<Disposable> {
  const before = locks.get(name);
  const { promise, resolve } = Promise.withResolvers<void>();
  const mine = (before ?? Promise.resolve()).then(() => promise);
  locks.set(name, mine);
  void mine.then(() => locks.get(name) === mine && locks.delete(name));
  await before;
  return { [Symbol.dispose]: resolve };
}
