import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir, uptime } from 'node:os';
import { join } from 'node:path';
import { AtollError } from '../../../base/error.ts';
import { KeyedMutex } from '../../../base/concurrency/keyed-mutex.ts';
import { createLog } from '../../../base/telemetry/log.ts';
import type { DockerMount } from '../../../protocol/build.ts';
import { HelperError } from '../../native/helper-process.ts';
import { cacheMountsDirOf, openCacheMounts } from './cache-mounts.ts';

let data = '';
beforeEach(() => void (data = mkdtempSync(join(tmpdir(), 'atoll-cache-mounts-'))));
afterEach(() => rmSync(data, { recursive: true, force: true }));

/** A time before the host's last start. */
const longAgo = () => new Date(Date.now() - uptime() * 1000 - 60_000);

type Fault = 'open' | 'repair' | 'no file system' | 'nothing in it' | undefined;

/**
 * Builds whose disks are directories: `happened` records what was done with them. `fault` is what is wrong with disks
 * that exist already.
 */
function node() {
  const happened: string[] = [];
  const logged: string[] = [];
  const state = { fault: undefined as Fault, isUsed: false };
  const mounts = join(data, 'mounts');
  const disks = {
    async create(image: string, sizeMiB: number, point: string) {
      await Promise.resolve();
      expect(existsSync(image)).toBe(false);
      happened.push(`create ${sizeMiB}`);
      writeFileSync(image, '');
      mkdirSync(join(point, 'work'), { recursive: true });
    },
    async open(_: string, point: string) {
      await Promise.resolve();
      happened.push('open');
      if (state.fault === 'open') throw new Error('no device');
      if (state.fault === 'no file system') throw new HelperError(22, 'disk-mount: mount ext4: Invalid argument');
      if (state.fault !== 'nothing in it') mkdirSync(join(point, 'work'), { recursive: true });
    },
    async close(point: string) {
      await Promise.resolve();
      happened.push('close');
      rmSync(point, { recursive: true, force: true });
    },
    used: () => Promise.resolve(state.isUsed),
  };
  const helper = {
    mountsPid: process.pid,
    spawn([name, ...options]: string[]) {
      happened.push([name, ...options.slice(0, -1)].join(' '));
      return Promise.resolve({ status: state.fault === 'repair' ? 8 : 0, output: '' });
    },
  };
  const cacheLocks = new KeyedMutex<string>();
  const open = (wanted: DockerMount[], teamId = 'a-team', signal = new AbortController().signal) =>
    openCacheMounts(build(teamId, signal), wanted);
  const build = (teamId: string, signal: AbortSignal) =>
    ({
      request: { teamId },
      signal,
      cacheLocks,
      layout: { data, mounts },
      disks,
      helper,
      nodeLog: createLog('debug', line => logged.push(line)),
    }) as unknown as Parameters<typeof openCacheMounts>[0];
  const images = () => (existsSync(dir) ? readdirSync(dir) : []);
  const dir = cacheMountsDirOf({ data });
  /** Opens the cache and disposes of it, so that the next build gets it. */
  const used = async (id: string, teamId?: string) => {
    await using opened = await open([cache(id)], teamId);
    return opened.binds[0]?.source ?? '';
  };
  return { open, used, images, dir, happened, logged, state };
}

const cache = (id: string, target = `/${id}`) => ({ kind: 'cache', id, target }) as DockerMount;

test('a cache directory is made once, shown where it is asked for, and kept for later builds', async () => {
  const { open, images, dir, happened } = node();
  {
    await using opened = await open([
      cache('modules', '/root/modules'),
      { kind: 'bind', target: '/else' } as unknown as DockerMount,
    ]);
    const source = expect.stringMatching(/\/mounts\/cache-[0-9a-f]{48}\/work$/) as string;
    expect(opened.binds).toEqual([{ source, target: '/root/modules' }]);
    expect(existsSync(opened.binds[0]?.source ?? '')).toBe(true);
    expect(happened).toEqual(['create 10240']);
  }
  expect(happened).toEqual(['create 10240', 'close']);
  expect(images()).toHaveLength(1);
  expect(statSync(dir).mode & 0o777).toBe(0o700);
  utimesSync(join(dir, images()[0] ?? ''), new Date(Date.now() - 1000), new Date(Date.now() - 1000));
  const before = Date.now() - 500;
  happened.length = 0;
  {
    await using _ = await open([cache('modules')]);
    expect(happened).toEqual(['e2fsck -p', 'open']);
    expect(statSync(join(dir, images()[0] ?? '')).mtimeMs).toBeGreaterThan(before);
  }
});

test('teams and IDs have directories of their own', async () => {
  const { used, images } = node();
  const all = [await used('a', 'one'), await used('b', 'one'), await used('a', 'two')];
  expect(new Set(all).size).toBe(3);
  expect(await used('a', 'one')).toBe(all[0]!);
  expect(images()).toHaveLength(3);
  // The caches of a team have the same beginning, and no other team's have it.
  const teams = all.map(source => /cache-([0-9a-f]{16})/.exec(source)?.[1]);
  expect(teams[0]).toBe(teams[1]!);
  expect(teams[0]).not.toBe(teams[2]!);
});

test('one build at a time has a directory, and two that want the same ones never wait for each other', async () => {
  const { open } = node();
  const first = await open([cache('a'), cache('b')]);
  const second = open([cache('b'), cache('a')]);
  for (let turn = 0; turn < 50; turn++) await Promise.resolve();
  expect(Bun.peek.status(second)).toBe('pending');
  const both = [second, open([cache('a'), cache('b')])];
  const all = Promise.all(both.map(async opening => (await opening)[Symbol.asyncDispose]()));
  await first[Symbol.asyncDispose]();
  await all;
});

test('two mounts of one ID show the same directory, and the command does not wait for itself', async () => {
  const { open, happened } = node();
  await using opened = await open([cache('a', '/one'), cache('b'), cache('a', '/two')]);
  const sourceOf = (target: string) => opened.binds.find(bind => bind.target === target)?.source;
  expect(sourceOf('/one')).toBeString();
  expect(sourceOf('/two')).toBe(sourceOf('/one')!);
  expect(sourceOf('/b')).not.toBe(sourceOf('/one')!);
  expect(happened).toEqual(['create 10240', 'create 10240']);
});

test('a build that is cancelled waits for no directory, and keeps none from the next one', async () => {
  const { open } = node();
  const first = await open([cache('a')]);
  const cancel = new AbortController();
  const waiting = open([cache('b'), cache('a')], 'a-team', cancel.signal);
  cancel.abort();
  await expect(waiting).rejects.toMatchObject({ code: 'canceled' });
  await first[Symbol.asyncDispose]();
  await using _ = await open([cache('a'), cache('b')]);
});

test('a disk from before the host’s last start is read through before it is used', async () => {
  const { used, images, dir, happened } = node();
  await used('a');
  utimesSync(join(dir, images()[0] ?? ''), longAgo(), longAgo());
  happened.length = 0;
  await used('a');
  expect(happened).toEqual(['e2fsck -f -p', 'open', 'close']);
});

test('a disk that is still mounted somewhere is not repaired', async () => {
  const { used, happened, state } = node();
  await used('a');
  happened.length = 0;
  state.isUsed = true;
  await used('a');
  expect(happened).toEqual(['open', 'close']);
});

test('a damaged disk is replaced by an empty one, and that is logged', async () => {
  for (const fault of ['repair', 'no file system', 'nothing in it'] as const) {
    const { used, happened, logged, state } = node();
    await used('a');
    state.fault = fault;
    happened.length = 0;
    await used('a');
    expect(happened).toContain('create 10240');
    expect(happened.filter(what => what === 'close')).toHaveLength(fault === 'nothing in it' ? 2 : 1);
    expect(logged.filter(line => line.includes('is damaged and begins anew'))).toHaveLength(1);
    rmSync(cacheMountsDirOf({ data }), { recursive: true });
  }
});

test('a disk that can’t be opened for another reason stays as it is, and the next build gets it', async () => {
  const { used, images, happened, state } = node();
  await used('a');
  state.fault = 'open';
  await expect(used('a')).rejects.toThrow('no device');
  expect(images()).toHaveLength(1);
  state.fault = undefined;
  happened.length = 0;
  await used('a');
  expect(happened).not.toContain('create 10240');
});

test('the directory of a team that was unused for the longest makes room for another', async () => {
  const { used, open, images, dir } = node();
  await used('of another', 'team');
  const names: string[] = [];
  for (let index = 0; index < 16; index++) names.push(nameOf(await used(`id-${index}`)));
  const usedBefore = (name: string, minutes: number) =>
    utimesSync(join(dir, name), new Date(), new Date(Date.now() - minutes * 60_000));
  names.forEach((name, index) => usedBefore(name, [20, 5, 30][index] ?? 1));
  {
    // It is in use, so the next oldest goes.
    await using _ = await open([cache('id-2')]);
    usedBefore(names[2]!, 30);
    await used('id-16');
    expect(names.filter(name => !images().includes(name))).toEqual([names[0]!]);
  }
  expect(images()).toHaveLength(17);
  await used('id-17');
  expect(names.filter(name => !images().includes(name))).toEqual([names[0]!, names[2]!]);
});

test('builds that make directories at the same moment get no more of them together', async () => {
  const { open, images } = node();
  const all = await Promise.allSettled(Array.from({ length: 20 }, (_, index) => open([cache(`new${index}`)])));
  const refused = all.filter(({ status }) => status === 'rejected');
  for (const { reason } of refused as PromiseRejectedResult[]) expect(reason).toMatchObject({ code: 'no_space' });
  expect([images().length, refused.length]).toEqual([16, 4]);
  for (const opened of all) if (opened.status === 'fulfilled') await opened.value[Symbol.asyncDispose]();
});

test('if all directories of a team are in use there is no room, and those of others are not touched', async () => {
  const { open, used, images } = node();
  await used('of another', 'team');
  const ids = Array.from({ length: 16 }, (_, index) => cache(`id-${index}`));
  await using _ = await open(ids);
  const failed = await open([cache('one more')]).catch((error: unknown) => error);
  expect(failed).toBeInstanceOf(AtollError);
  expect(failed).toMatchObject({ code: 'no_space', message: expect.stringContaining('16 cache directories') });
  expect(images()).toHaveLength(17);
});

const nameOf = (source: string) => `${/cache-([0-9a-f]+)/.exec(source)?.[1]}.img`;
