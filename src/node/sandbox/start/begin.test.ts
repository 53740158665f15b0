import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog } from '../../../base/telemetry/log.ts';
import { slotOf } from '../../layout.ts';
import type { BeginOrder } from './begin-order.ts';
import { begin, type BeginParts } from './begin.ts';
import type { Pool } from './ahead/pool.ts';
import type { Standby } from './standby.ts';

let dir = '';
beforeEach(() => void (dir = mkdtempSync(join(tmpdir(), 'atoll-begin-'))));
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const slot = slotOf(0, 3);
const resources = { cpuCount: 2, memoryMiB: 512, diskMiB: 1024 };
const network = { allowInternetAccess: true };

/** A node with one standby sandbox. `happened` records what is done, in order; those named in `fails` fail. */
function node(standbyIs: Partial<Standby> = {}) {
  const happened: string[] = [];
  const fails = new Set<string>();
  const taken: unknown[] = [];
  const does = async (what: string) => {
    await Promise.resolve();
    happened.push(what);
    if (fails.has(what.split(' ')[0] ?? '')) throw new Error(`${what} failed`);
  };
  const driver = {
    capabilities: { adoptsRoot: true },
    resize: (_: unknown, pid: number, { memoryMiB }: typeof resources) => does(`resize ${pid} ${memoryMiB}`),
    giveRoot: (_: unknown, pid: number, root: { layers: string[]; disk: string }) =>
      does(`root ${pid} ${root.layers.join('+')} ${root.disk.slice(dir.length)}`),
    nameHost: (_: number, name: string) => does(`name ${name}`),
    mountVolume: (_: unknown, __: number, { source, path }: { source: string; path: string }) =>
      does(`volume ${source} ${path}`),
  };
  const processes = { slot, pid: 42, namespace: {}, driver };
  const standby = { processes, resources, layers: null, controlToken: 't', bootId: 'b', ...standbyIs } as Standby;
  const parts = {
    layout: { mounts: join(dir, 'mounts'), disks: join(dir, 'disks') },
    layers: { mount: (digest: string) => does(`mount ${digest}`).then(() => `/layers/${digest}`) },
    disks: {
      close: (point: string) => does(`close ${point.slice(dir.length)}`),
      open: (image: string, point: string) => does(`open ${image} ${point.slice(dir.length)}`),
    },
    processControl: { release: ({ pid }: { pid: number }) => does(`release ${pid}`) },
    egress: {
      apply: ({ sandboxId }: { sandboxId: string }, policy: unknown) =>
        does(`egress ${sandboxId} ${policy === network}`),
    },
    volumes: {
      hold: (_: unknown, ids: string[]) => does(`hold ${ids.join('+')}`).then(() => ids.map(id => `/volumes/${id}`)),
      change: (_: unknown, work: () => Promise<void>) => work(),
    },
    helper: { mountsPid: process.pid, spawn: () => Promise.resolve({ status: 0, output: '' }) },
    helperBinary: '/helper',
    removals: { run: (work: () => Promise<unknown>) => work() },
    log: silentLog,
  } as unknown as BeginParts;
  const pool = { take: (_: unknown, asked: unknown) => (taken.push(asked), standby) } as unknown as Pool;
  const usual = { sandboxId: 'a', hostname: 'a', driver, layers: ['l1', 'l2'], resources, network, volumes: [] };
  const order = (changes: Partial<BeginOrder>) => ({ ...usual, disk: null, ...changes }) as unknown as BeginOrder;
  const started = (changes: Partial<BeginOrder> = {}) => begin(parts, order(changes), pool);
  return { begin: started, happened, fails, taken, standby };
}

test('a standby sandbox becomes the one that is asked for', async () => {
  const it = node();
  expect(await it.begin()).toBe(it.standby);
  expect(it.taken).toEqual([{ resources, layers: ['l1', 'l2'] }]);
  expect(it.happened.slice(0, 2)).toEqual(['mount l1', 'mount l2']);
  expect(it.happened.slice(2).sort()).toEqual(['egress a true', 'name a', 'root 42 /layers/l1+/layers/l2 /mounts/s3']);
});

test('one of another size is changed before it gets its root', async () => {
  for (const size of ['cpuCount', 'memoryMiB'] as const) {
    const it = node({ resources: { ...resources, [size]: 1 } });
    await it.begin();
    const [resized, rooted] = ['resize', 'root'].map(what => it.happened.findIndex(one => one.startsWith(what)));
    expect(resized).toBeGreaterThan(0);
    expect(rooted).toBeGreaterThan(resized!);
  }
});

test('one that has its root already keeps it, and one without a name of its own gets none', async () => {
  const it = node({ layers: ['l1', 'l2'], resources: { ...resources, cpuCount: 1 } });
  await it.begin({ hostname: null });
  expect(it.happened).toEqual(['mount l1', 'mount l2', 'egress a true']);
});

test('volumes are mounted when the root is there', async () => {
  const it = node();
  await it.begin({ volumes: [{ volumeId: 'v', path: '/data' }] as BeginOrder['volumes'] });
  const [root, held, mounted] = ['root', 'hold v', 'volume /volumes/v /data'].map(what =>
    it.happened.findIndex(one => one.startsWith(what)),
  );
  expect(root).toBeGreaterThan(0);
  expect(held).toBeGreaterThan(root!);
  expect(mounted).toBeGreaterThan(held!);
});

test('one that boots again gets its own disk in place of the standby’s, with nothing that ran before', async () => {
  const it = node();
  mkdirSync(join(dir, 'disks'));
  writeFileSync(join(dir, 'disks', 's3.img'), '');
  mkdirSync(join(dir, 'mounts/s3/upper/run'), { recursive: true });
  writeFileSync(join(dir, 'mounts/s3/upper/run/lock'), '');
  await it.begin({ disk: '/own.img' });
  expect(it.taken).toEqual([null]);
  expect(it.happened.slice(2, 4)).toEqual(['close /mounts/s3', 'open /own.img /mounts/s3']);
  expect(existsSync(join(dir, 'disks', 's3.img'))).toBe(false);
  expect(existsSync(join(dir, 'mounts/s3/upper/run/lock'))).toBe(false);
  expect(it.happened.some(one => one.startsWith('root'))).toBe(true);
});

test('a failed begin leaves nothing, and nothing of it runs on', async () => {
  for (const failing of ['root', 'name', 'egress', 'hold', 'volume', 'resize']) {
    const it = node({ resources: { ...resources, cpuCount: 1 } });
    it.fails.add(failing);
    const volumes = [{ volumeId: 'v', path: '/data' }] as BeginOrder['volumes'];
    await expect(it.begin({ volumes })).rejects.toThrow(/failed$/);
    expect(it.happened.at(-1)).toBe('release 42');
    expect(it.happened).toContain('egress a true');
    expect(it.happened.filter(what => what.startsWith('release'))).toHaveLength(1);
  }
});

test('without its layers, or its disk, it does not begin', async () => {
  const it = node();
  it.fails.add('mount');
  await expect(it.begin()).rejects.toThrow('mount l1 failed');
  expect(it.taken).toEqual([]);
  it.fails.clear();
  it.fails.add('close');
  await expect(it.begin({ disk: '/own.img' })).rejects.toThrow('close /mounts/s3 failed');
  expect(it.happened.at(-1)).toBe('release 42');
});
