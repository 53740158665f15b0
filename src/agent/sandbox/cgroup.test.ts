import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { readCgroup, readOutOfMemoryKills } from './cgroup.ts';

let root: string;
beforeEach(() => (root = mkdtempSync(join(tmpdir(), 'atoll-cgroup-'))));
afterEach(() => rmSync(root, { recursive: true }));

/** Shows files of a control group. */
function show(files: Record<string, string>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
}

const nothing = {
  memoryLimitBytes: undefined,
  memoryUsedBytes: undefined,
  memoryCacheBytes: undefined,
  cpuUsedMicroseconds: undefined,
  cpuLimit: undefined,
};

test('version 2 says it in files of the group itself', () => {
  show({
    'cgroup.controllers': 'cpu memory\n',
    'memory.max': '536870912\n',
    'memory.current': '1048576\n',
    'memory.stat': 'anon 5\nfile 700\nshmem 200\ninactive_file 9\n',
    'cpu.stat': 'usage_usec 1234\nuser_usec 1000\n',
    'cpu.max': '150000 100000\n',
    'memory.events': 'oom 4\noom_kill 3\n',
  });
  expect(readCgroup(root)).toEqual({
    memoryLimitBytes: 536_870_912,
    memoryUsedBytes: 1_048_576,
    // Files that exist only in memory can't be given up.
    memoryCacheBytes: 500,
    cpuUsedMicroseconds: 1234,
    cpuLimit: 1.5,
  });
  expect(readOutOfMemoryKills(root)).toBe(3);
});

test('where there is no limit none is told', () => {
  show({ 'cgroup.controllers': '', 'memory.max': 'max\n', 'cpu.max': 'max 100000\n' });
  expect(readCgroup(root)).toEqual(nothing);
  for (const max of ['0 100000', '100000 0', '100000']) {
    show({ 'cpu.max': max });
    expect(readCgroup(root).cpuLimit).toBeUndefined();
  }
  show({ 'memory.stat': 'file 700\n' });
  expect(readCgroup(root).memoryCacheBytes).toBe(700);
});

test('version 1 says it in a folder of each controller', () => {
  show({
    'memory/memory.limit_in_bytes': '536870912\n',
    'memory/memory.usage_in_bytes': '1048576\n',
    'memory/memory.stat': 'cache 1\ntotal_cache 700\ntotal_shmem 200\n',
    'memory/memory.oom_control': 'oom_kill_disable 0\nunder_oom 0\noom_kill 2\n',
    'cpuacct/cpuacct.usage': '5000000\n',
    'cpu/cpu.cfs_quota_us': '50000\n',
    'cpu/cpu.cfs_period_us': '100000\n',
  });
  expect(readCgroup(root)).toEqual({
    memoryLimitBytes: 536_870_912,
    memoryUsedBytes: 1_048_576,
    memoryCacheBytes: 500,
    cpuUsedMicroseconds: 5000,
    cpuLimit: 0.5,
  });
  expect(readOutOfMemoryKills(root)).toBe(2);
  show({ 'memory/memory.limit_in_bytes': `${2n ** 63n - 4096n}`, 'cpu/cpu.cfs_quota_us': '-1' });
  expect(readCgroup(root)).toMatchObject({ memoryLimitBytes: undefined, cpuLimit: undefined });
  show({ 'memory/memory.limit_in_bytes': `${2 ** 60}` });
  expect(readCgroup(root).memoryLimitBytes).toBeUndefined();
});

test('controllers that share a folder are found there', () => {
  show({
    'cpu,cpuacct/cpuacct.usage': '7000',
    'cpu,cpuacct/cpu.cfs_quota_us': '200000',
    'cpu,cpuacct/cpu.cfs_period_us': '100000',
  });
  expect(readCgroup(root)).toEqual({ ...nothing, cpuUsedMicroseconds: 7, cpuLimit: 2 });
});

test('where no file shows anything nothing is told', () => {
  expect(readCgroup(root)).toEqual(nothing);
  expect(readOutOfMemoryKills(root)).toBe(0);
});
