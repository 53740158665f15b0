import { afterAll, afterEach, beforeAll, beforeEach, expect, jest, test } from 'bun:test';
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statfsSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { freeBytesOf } from '../../base/disk-room.ts';
import { tryCommand } from '../../base/process/command.ts';
import { createLog } from '../../base/telemetry/log.ts';
import { pathInHelper, startHelper, type Helper } from '../native/helper.ts';
import { libc } from '../native/libc.ts';
import type { MountedDisk } from './mounted-disks.ts';
import { watchSpace, type Space } from './space.ts';

const MiB = 1024 ** 2;
const totalMiB = 100;
const run = (program: string, ...args: string[]) => tryCommand([program, ...args]);

let folder = '';
let data = '';
let helper: Helper;
/** A path of the helper's mount namespace, as this process sees it. */
const seen = (path: string) => pathInHelper({ helper }, path);
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'atoll-space-'));
  const binary = join(import.meta.dir, '../../../dist/helper');
  for (const name of ['data', 'run', 'mounts']) mkdirSync(join(folder, name));
  helper = await startHelper({ binary, runDir: join(folder, 'run'), onLost() {} });
  // A disk whose room nobody else takes. It goes with the helper, however this process ends.
  await inHelper('mount', '-t', 'tmpfs', '-o', `size=${totalMiB}m`, 'none', join(folder, 'data'));
  data = seen(join(folder, 'data'));
});
afterAll(async () => {
  await helper.stop();
  rmSync(folder, { recursive: true, force: true });
});
const inHelper = (...argv: string[]) => run('nsenter', '--target', `${helper.mountsPid}`, '--mount', ...argv);

beforeEach(() => void jest.useFakeTimers());
afterEach(() => {
  jest.useRealTimers();
  for (const name of ['file', 'disk.img']) rmSync(join(data, name), { force: true });
});

/** Waits until a look that is due has ended. */
async function looked(afterMs = 0): Promise<void> {
  jest.advanceTimersByTime(afterMs);
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
}

/** Takes this much of the disk, MiB. */
function fill(mib: number): void {
  const file = openSync(join(data, 'file'), 'w');
  expect(libc.fallocate(file, 0, 0n, BigInt(mib * MiB))).toBe(0);
  closeSync(file);
}

type Watched = Space &
  AsyncDisposable & {
    happened: string[];
    logged: { level: string; message: string; error?: string }[];
    images: Map<string, string>;
    knows: { value: boolean };
  };

/** Watches the disk. `happened` records the reports; `images` says which disk is mounted where. */
function watched(reserveMiB: number, mountsPid = helper.mountsPid): Watched {
  const happened: string[] = [];
  const logged: Watched['logged'] = [];
  const images = new Map<string, string>();
  const knows = { value: true };
  const space = watchSpace({
    dataDir: data,
    mounts: join(folder, 'mounts'),
    mountsPid,
    reserveBytes: reserveMiB * MiB,
    images: () => point => images.get(point),
    log: createLog('debug', line => logged.push(JSON.parse(line) as Watched['logged'][number])),
    onHeld: held => happened.push(held ? 'held' : 'released'),
    onFailed({ point }: MountedDisk) {
      happened.push(`failed ${basename(point)}`);
      return knows.value;
    },
  });
  return { ...space, happened, logged, images, knows, [Symbol.asyncDispose]: space.stop };
}

test('unpromised room counts as free, and nothing begins that takes from the reserve', async () => {
  await using space = watched(40);
  const free = freeBytesOf(data);
  expect(space.freeBytes()).toBe(free);
  space.require('a thing');
  space.require('a thing', 60 * MiB);
  expect(() => space.require('a thing', 60 * MiB + 1)).toThrow(
    expect.objectContaining({ code: 'no_space', message: expect.stringContaining('for a thing') }) as Error,
  );
  {
    using room = space.reserve('a thing', 20 * MiB);
    expect(space.freeBytes()).toBe(free - 20 * MiB);
    expect(() => space.require('another', 41 * MiB)).toThrow();
    space.require('another', 40 * MiB);
    room.wrote(5 * MiB);
    expect(space.freeBytes()).toBe(free - 15 * MiB);
    expect(() => space.reserve('another', 46 * MiB)).toThrow(expect.objectContaining({ code: 'no_space' }) as Error);
    // With a smaller reserve there is room for it.
    using other = space.reserve('another', 46 * MiB, 10 * MiB);
    expect(() => space.reserve('a third', 30 * MiB, 10 * MiB)).toThrow();
    other.wrote(0);
  }
  expect(space.freeBytes()).toBe(free);
  expect(space.facts()).toEqual({ freeBytes: free, owedBytes: 0, reserveBytes: 40 * MiB, held: false, failedDisks: 0 });
});

test('disks are held and work that writes ends below half of the reserve, until three quarters are free', async () => {
  await using space = watched(40);
  await looked();
  const writing = space.signal();
  fill(79);
  await looked(200);
  expect([space.happened, writing.aborted]).toEqual([[], false]);
  fill(81);
  await looked(199);
  expect(space.happened).toEqual([]);
  await looked(1);
  expect(space.happened).toEqual(['held']);
  expect(writing.reason).toMatchObject({ code: 'no_space', fields: { freeBytes: 19 * MiB, reserveBytes: 40 * MiB } });
  expect(space.signal().aborted).toBe(true);
  expect(space.facts().held).toBe(true);
  expect(space.logged.at(-1)).toMatchObject({ level: 'error', freeBytes: 19 * MiB, reserveBytes: 40 * MiB });
  fill(71);
  await looked(200);
  expect(space.happened).toEqual(['held']);
  fill(70);
  await looked(200);
  expect(space.happened).toEqual(['held', 'released']);
  expect(space.signal().aborted).toBe(false);
  expect(writing.aborted).toBe(true);
  expect(space.facts().held).toBe(false);
  expect(space.logged.at(-1)).toMatchObject({ level: 'warn', freeBytes: 30 * MiB });
  expect(space.logged).toHaveLength(2);
});

test('promised room holds no disk', async () => {
  await using space = watched(40);
  using _ = space.reserve('a thing', 60 * MiB);
  await looked();
  await looked(200);
  expect(space.happened).toEqual([]);
});

test('a disk that is far from full is looked at once a second', async () => {
  await using space = watched(20); // nearly full is below 80 MiB
  await looked();
  fill(95);
  await looked(999);
  expect(space.happened).toEqual([]);
  await looked(1);
  expect(space.happened).toEqual(['held']);
});

test('if nobody can fill it until then, the next look comes later, depending on the free room', async () => {
  const gib = 2 ** 30;
  for (const [free, ms] of [
    [31, 1000],
    [48, 6000],
    [200, 8000],
  ] as const) {
    const ballast = 64 * MiB;
    await inHelper('mount', '-o', `remount,size=${free * gib + 80 * MiB + ballast}`, join(folder, 'data'));
    await using space = watched(20);
    await looked();
    await inHelper('mount', '-o', `remount,size=${totalMiB}m`, join(folder, 'data'));
    fill(31);
    await looked(ms - 1);
    expect(space.happened).toEqual([]);
    await looked(1);
    expect(space.happened).toEqual(['held']);
    rmSync(join(data, 'file'));
  }
  rmSync(join(data, 'ballast'));
});

test('repeated failures to look are reported once, and nothing is looked at after the end', async () => {
  const gone = Bun.spawn(['true']);
  await gone.exited;
  const space = watched(40, gone.pid);
  await looked();
  await looked(200);
  await looked(200);
  expect(space.logged).toHaveLength(1);
  expect(space.logged[0]).toMatchObject({ level: 'error', error: expect.stringContaining('ENOENT') as string });
  await space.stop();
  fill(90);
  await looked(10_000);
  expect(space.happened).toEqual([]);
});

test('the end comes at once, wherever a look is', async () => {
  for (let turns = 0; turns < 10; turns++) {
    const space = watched(40);
    for (let turn = 0; turn < turns; turn++) await Promise.resolve();
    await space.stop();
    await looked(10_000);
    expect(space.happened).toEqual([]);
  }
});

test('disks owe what they have promised, and grow as far as there is room', async () => {
  const [image, point] = [join(data, 'disk.img'), join(folder, 'mounts', 'disk')];
  const inside = (...path: string[]) => join(seen(point), ...path);
  writeFileSync(image, '');
  truncateSync(image, 64 * MiB);
  await run('mkfs.ext4', '-q', '-F', '-b', '4096', '-m', '0', '-O', '^resize_inode', '-J', 'size=4', image);
  const { device } = await helper.call('disk-mount', { image: join(folder, 'data', 'disk.img'), at: point });
  const clusters = () => Number(readFileSync(`/sys/fs/ext4/${device.replace('/dev/', '')}/reserved_clusters`, 'utf8'));
  try {
    await using space = watched(40);
    space.images.set(point, image);
    await looked();
    const before = { owed: space.facts().owedBytes, clusters: clusters() };
    expect(before.clusters).toBe(Math.floor((64 * MiB) / 4096 / 50));
    await run('fallocate', '--length', '30M', inside('promised'));
    await looked(200);
    expect(space.facts().owedBytes - before.owed).toBeGreaterThanOrEqual(29 * MiB);
    expect(space.freeBytes()).toBe(freeBytesOf(data) - space.facts().owedBytes);
    // The host's disk fills further: less than half of the reserve would be left.
    fill(60);
    await looked(200);
    expect(space.happened).toEqual(['held']);
    expect(clusters()).toBe(statfsSync(inside()).blocks - 1);
    await expect(run('sh', '-c', `echo more > ${inside('more')}`)).rejects.toThrow();
    fill(30);
    await looked(200);
    expect(space.happened).toEqual(['held', 'released']);
    // It may take what is left above a quarter of the reserve.
    fill(42);
    await looked(200);
    expect(space.happened).toHaveLength(2);
    const { bfree, bsize } = statfsSync(inside());
    expect(clusters()).toBe(bfree - Math.floor((space.freeBytes() - 10 * MiB) / bsize));
    expect(clusters()).toBeGreaterThan(before.clusters);
    // A disk that belongs to nobody owes nothing.
    space.images.clear();
    await looked(200);
    expect(space.facts().owedBytes).toBe(0);
    expect(space.facts().failedDisks).toBe(0);
    // The report repeats until somebody knows of it.
    space.knows.value = false;
    await inHelper('mount', '-o', 'remount,ro', point);
    await looked(200);
    space.knows.value = true;
    for (let look = 0; look < 3; look++) await looked(200);
    expect(space.happened.slice(2)).toEqual(['failed disk', 'failed disk']);
    expect(space.facts().failedDisks).toBe(1);
    await helper.call('unmount', { at: point });
    await looked(200);
    expect(space.facts().failedDisks).toBe(0);
    expect(space.logged.map(({ level }) => level)).toEqual(['error', 'warn']);
  } finally {
    await helper.call('unmount', { at: point });
  }
});
