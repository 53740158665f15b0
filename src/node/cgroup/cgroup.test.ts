import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { detectCgroups } from './cgroup.ts';

let root: string;
beforeEach(() => (root = mkdtempSync(join(tmpdir(), 'atoll-cgroup-'))));
afterEach(() => rmSync(root, { recursive: true, force: true }));

const write = (files: Record<string, string>) => {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
};

test('what a group uses is read of version 2', () => {
  write({
    'cgroup.controllers': 'cpu memory\n',
    'g/s1/cpu.stat': 'usage_usec 123456\nuser_usec 100000\nsystem_usec 23456\n',
    'g/s1/memory.current': '10485760\n',
    'g/s1/memory.stat': 'anon 4194304\nfile 3145728\nshmem 1048576\nfile_mapped 4096\n',
  });
  const cgroups = detectCgroups(root);
  expect(cgroups.version).toBe('v2');
  expect([cgroups.memoryUsed('/g/s1'), cgroups.cacheBytes('/g/s1')]).toEqual([10_485_760, 2_097_152]);
  expect(cgroups.cpuUs('/g/s1')).toBe(123_456);
  for (const look of [cgroups.memoryUsed, cgroups.cacheBytes, cgroups.cpuUs])
    expect(() => look('/g/s2')).toThrow('ENOENT');
});

test('what a group uses is read of version 1, with what is below it', () => {
  write({
    'cpuacct/g/s1/cpuacct.usage': '123456789\n',
    'memory/g/s1/memory.usage_in_bytes': '10485760\n',
    'memory/g/s1/memory.stat':
      'cache 1\nrss 2\nhierarchical_memory_limit 3\ntotal_cache 3145728\ntotal_rss 4\ntotal_shmem 1048576\n',
  });
  const cgroups = detectCgroups(root);
  expect(cgroups.version).toBe('v1');
  expect([cgroups.memoryUsed('/g/s1'), cgroups.cacheBytes('/g/s1')]).toEqual([10_485_760, 2_097_152]);
  expect(cgroups.cpuUs('/g/s1')).toBe(123_456.789);
});

test('the time of a group is its own where another had its name, and nothing of that stays open', async () => {
  write({ 'cgroup.controllers': 'cpu memory\n', 'g/s1/cpu.stat': 'usage_usec 1\n' });
  const cgroups = detectCgroups(root);
  const before = readdirSync('/proc/self/fd').length;
  expect(cgroups.cpuUs('/g/s1')).toBe(1);
  write({ 'g/s1/cpu.stat': 'usage_usec 22\n' });
  expect(cgroups.cpuUs('/g/s1')).toBe(22);
  rmSync(join(root, 'g/s1/cpu.stat'));
  await cgroups.remove('/g/s1');
  expect(readdirSync('/proc/self/fd').length).toBe(before);
  write({ 'g/s1/cpu.stat': 'usage_usec 3\n' });
  expect(cgroups.cpuUs('/g/s1')).toBe(3);
});

test('a group of version 2 is empty when nothing of it is populated, and is killed as a whole', () => {
  write({
    'cgroup.controllers': 'cpu memory\n',
    'g/s1/cgroup.events': 'populated 1\nfrozen 1\n',
    'g/s1/cgroup.procs': '',
    'g/s1/cgroup.kill': '',
    'g/s2/cgroup.events': 'populated 0\nfrozen 0\n',
  });
  const cgroups = detectCgroups(root);
  // No process is listed: those that are ending are not.
  expect([cgroups.isEmpty('/g/s1'), cgroups.isEmpty('/g/s2'), cgroups.isEmpty('/g/gone')]).toEqual([false, true, true]);
  cgroups.kill('/g/s1');
  expect(readFileSync(join(root, 'g/s1/cgroup.kill'), 'utf8')).toBe('1');
  cgroups.kill('/g/gone');
});

test('a group is removed with what is below it, and one that is gone is no failure', async () => {
  write({ 'cgroup.controllers': 'cpu memory\n' });
  mkdirSync(join(root, 'g/s1/below'), { recursive: true });
  const cgroups = detectCgroups(root);
  await cgroups.remove('/g');
  await cgroups.remove('/g');
  expect(existsSync(join(root, 'g'))).toBe(false);
});

const limited = { cpuCount: 1, memoryMiB: 512, diskMiB: 1024 };
const contents = (paths: string[]) =>
  Object.fromEntries(paths.map(path => [path, readFileSync(join(root, path), 'utf8')]));

test('a sandbox of version 2 has as much of everything as it may use, and a processor of its own', () => {
  const files = ['memory.max', 'memory.swap.max', 'cpu.max', 'pids.max', 'cpuset.cpus'].map(name => `g/s1/${name}`);
  write({ 'cgroup.controllers': 'cpu memory\n', ...Object.fromEntries(files.map(path => [path, ''])) });
  detectCgroups(root).setLimits('/g/s1', limited);
  expect(contents(files)).toEqual({
    'g/s1/memory.max': String(512 << 20),
    'g/s1/memory.swap.max': '0',
    'g/s1/cpu.max': '100000 100000',
    'g/s1/pids.max': '1024',
    'g/s1/cpuset.cpus': expect.stringMatching(/^\d+$/),
  });
});

test('a sandbox of version 1 has the same, and no more with swap than without', () => {
  const [memory, withSwap] = ['memory/g/s1/memory.limit_in_bytes', 'memory/g/s1/memory.memsw.limit_in_bytes'];
  const others = ['cpu/g/s1/cpu.cfs_quota_us', 'pids/g/s1/pids.max', 'cpuset/g/s1/cpuset.cpus'];
  for (const before of ['1', String(1 << 30)]) {
    write(Object.fromEntries([memory, withSwap, ...others].map(path => [path, before])));
    detectCgroups(root).setLimits('/g/s1', limited);
    expect(contents([memory, withSwap, ...others])).toEqual({
      [memory]: String(512 << 20),
      [withSwap]: String(512 << 20),
      'cpu/g/s1/cpu.cfs_quota_us': '100000',
      'pids/g/s1/pids.max': '1024',
      'cpuset/g/s1/cpuset.cpus': expect.stringMatching(/^\d+$/),
    });
  }
});

test('a group that can’t be read is not taken for an empty one', () => {
  write({ 'cgroup.controllers': 'cpu memory\n' });
  // Reading a folder fails as reading a file does where descriptors have run out: there is something.
  mkdirSync(join(root, 'g/s1/cgroup.procs'), { recursive: true });
  mkdirSync(join(root, 'g/s1/cgroup.events'), { recursive: true });
  mkdirSync(join(root, 'g/s1/memory.events'), { recursive: true });
  const cgroups = detectCgroups(root);
  for (const look of [cgroups.processes, cgroups.isEmpty, cgroups.outOfMemoryKills])
    expect(() => look('/g/s1')).toThrow('EISDIR');
  expect([cgroups.processes('/g/gone'), cgroups.list('/g/gone')]).toEqual([[], []]);
});
