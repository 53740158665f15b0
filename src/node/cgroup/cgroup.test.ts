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

test('the use of a group is read from version 2', () => {
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

test('the use of a group is read from version 1, including the groups below it', () => {
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
  rmSync(join(root, 'cgroup.controllers'));
  write({ 'cpuacct/cgroup.procs': '', 'cpuacct/g/s1/cpuacct.usage': '1000\n' });
  const first = detectCgroups(root);
  expect(first.cpuUs('/g/s1')).toBe(1);
  rmSync(join(root, 'cpuacct/g/s1/cpuacct.usage'));
  await first.remove('/g/s1');
  expect(readdirSync('/proc/self/fd').length).toBe(before + 1);
  write({ 'cpuacct/g/s1/cpuacct.usage': '3000\n' });
  expect(first.cpuUs('/g/s1')).toBe(3);
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
  // No process is listed, because those that are ending are not.
  expect([cgroups.isEmpty('/g/s1'), cgroups.isEmpty('/g/s2'), cgroups.isEmpty('/g/gone')]).toEqual([false, true, true]);
  cgroups.kill('/g/s1');
  expect(readFileSync(join(root, 'g/s1/cgroup.kill'), 'utf8')).toBe('1');
  cgroups.kill('/g/gone');
});

test('writes to a device are limited, for the group or, under version 1, for everybody', () => {
  write({ 'cgroup.controllers': 'cpu memory\n', 'g/io.max': '' });
  detectCgroups(root).limitWrites('/g', '7:112', 1000);
  expect(contents(['g/io.max'])).toEqual({ 'g/io.max': '7:112 wbps=1000' });
  detectCgroups(root).limitWrites('/g', '7:112', undefined);
  expect(contents(['g/io.max'])).toEqual({ 'g/io.max': '7:112 wbps=max' });
  // As the kernel shows it.
  write({ 'g/io.max': '253:0 rbps=1 wbps=max riops=max wiops=max\n7:112 rbps=max wbps=1000 riops=max wiops=max\n' });
  expect(detectCgroups(root).limitedDevices('/g')).toEqual(['7:112']);
  expect(detectCgroups(root).limitedDevices('/gone')).toEqual([]);
  rmSync(join(root, 'cgroup.controllers'));
  const file = 'blkio/blkio.throttle.write_bps_device';
  write({ [file]: '', 'blkio/cgroup.procs': '' });
  detectCgroups(root).limitWrites('/g', '7:112', 1000);
  expect(contents([file])).toEqual({ [file]: '7:112 1000' });
  detectCgroups(root).limitWrites('/g', '7:112', undefined);
  expect(contents([file])).toEqual({ [file]: '7:112 0' });
  write({ [file]: '7:112 1000\n7:16 5\n' });
  expect(detectCgroups(root).limitedDevices('/g')).toEqual(['7:112', '7:16']);
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
    write(Object.fromEntries([memory, withSwap].map(path => [path, before])));
    write(Object.fromEntries(others.map(path => [path, ''])));
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

test('the limit with swap of version 1 is at no moment below the one without', () => {
  const [memory, withSwap] = ['memory/g/s1/memory.limit_in_bytes', 'memory/g/s1/memory.memsw.limit_in_bytes'];
  const others = ['cpu/g/s1/cpu.cfs_quota_us', 'pids/g/s1/pids.max', 'cpuset/g/s1/cpuset.cpus'];
  write(Object.fromEntries([memory, ...others].map(path => [path, '1'])));
  const cgroups = detectCgroups(root);
  // A kernel that counts no swap.
  cgroups.setLimits('/g/s1', limited);
  expect([readFileSync(join(root, memory), 'utf8'), existsSync(join(root, withSwap))]).toEqual([
    String(512 << 20),
    false,
  ]);
  // The limit can't be written: what comes before it is written, and nothing else.
  mkdirSync(join(root, withSwap));
  for (const [before, after] of [
    ['1', '1'],
    [String(1 << 30), String(512 << 20)],
  ] as const) {
    write({ [memory]: before });
    expect(() => cgroups.setLimits('/g/s1', limited)).toThrow('EISDIR');
    expect(readFileSync(join(root, memory), 'utf8')).toBe(after);
  }
});

test('a group that can’t be read is not taken for an empty one', () => {
  write({ 'cgroup.controllers': 'cpu memory\n' });
  // Reading a folder fails, as reading a file does without free descriptors: the group counts as not empty.
  mkdirSync(join(root, 'g/s1/cgroup.procs'), { recursive: true });
  mkdirSync(join(root, 'g/s1/cgroup.events'), { recursive: true });
  mkdirSync(join(root, 'g/s1/memory.events'), { recursive: true });
  const cgroups = detectCgroups(root);
  for (const look of [cgroups.processes, cgroups.isEmpty, cgroups.outOfMemoryKills])
    expect(() => look('/g/s1')).toThrow('EISDIR');
  expect([cgroups.processes('/g/gone'), cgroups.list('/g/gone')]).toEqual([[], []]);
});

const text = (path: string) => readFileSync(join(root, path), 'utf8');

test('the group above all sandboxes of version 2 has less weight than the platform, and hands everything down', () => {
  write({ 'cgroup.controllers': 'cpu memory\n', 'cgroup.subtree_control': '' });
  const cgroups = detectCgroups(root);
  for (const path of ['/g', '/g', '/above/g']) cgroups.makeParent(path);
  expect([text('g/cpu.weight'), text('above/g/cpu.weight')]).toEqual(['200', '200']);
  // The kernel takes the controllers one after the other; the file keeps the last.
  expect([text('cgroup.subtree_control'), text('g/cgroup.subtree_control')]).toEqual(['+io', '+io']);
});

test('the group above all sandboxes of version 1 has less weight than the platform', () => {
  write({ 'cpu/cgroup.procs': '' });
  const cgroups = detectCgroups(root);
  for (const path of ['/g', '/g', '/above/g']) cgroups.makeParent(path);
  expect([text('cpu/g/cpu.shares'), text('cpu/above/g/cpu.shares')]).toEqual(['2048', '2048']);
});

test('the weight of a group follows what it computes, and what dies has all the time that it can get', () => {
  write({ 'cgroup.controllers': 'cpu memory\n', 'g/s1/cpu.weight': '', 'g/s1/cpu.max': '' });
  const second = detectCgroups(root);
  const weights = [true, false].map(isHeavy => (second.weigh('/g/s1', isHeavy), text('g/s1/cpu.weight')));
  second.hasten('/g/s1');
  expect([...weights, text('g/s1/cpu.weight'), text('g/s1/cpu.max')]).toEqual(['6', '100', '1600', 'max']);
  rmSync(join(root, 'cgroup.controllers'));
  write({ 'cpu/g/s1/cpu.shares': '', 'cpu/g/s1/cpu.cfs_quota_us': '' });
  const first = detectCgroups(root);
  const shares = [true, false].map(isHeavy => (first.weigh('/g/s1', isHeavy), text('cpu/g/s1/cpu.shares')));
  first.hasten('/g/s1');
  expect([...shares, text('cpu/g/s1/cpu.shares'), text('cpu/g/s1/cpu.cfs_quota_us')]).toEqual([
    ...['64', '1024', '16384', '-1'],
  ]);
  for (const cgroups of [first, second]) {
    cgroups.hasten('/g/gone');
    // A group without a controller is no failure, and gets no file for it; one that can't be written is a failure.
    for (const path of ['g/bare', 'cpu/g/bare']) mkdirSync(join(root, path), { recursive: true });
    cgroups.hasten('/g/bare');
    expect([...readdirSync(join(root, 'g/bare')), ...readdirSync(join(root, 'cpu/g/bare'))]).toEqual([]);
    for (const name of ['cpu.max', 'cpu.cfs_quota_us'])
      for (const path of ['g/odd', 'cpu/g/odd']) mkdirSync(join(root, path, name), { recursive: true });
    expect(() => cgroups.hasten('/g/odd')).toThrow('EISDIR');
    expect(() => cgroups.weigh('/g/gone', true)).toThrow('ENOENT');
  }
});

test('a group that computes on and on waits for the others where the kernel can do that, until it dies', () => {
  write({ 'cgroup.controllers': 'cpu memory\n', 'g/s1/cpu.weight': '100', 'g/s1/cpu.idle': '0' });
  const second = detectCgroups(root);
  const idle = [true, false, true].map(isHeavy => (second.weigh('/g/s1', isHeavy), text('g/s1/cpu.idle')));
  expect([...idle, text('g/s1/cpu.weight')]).toEqual(['1', '0', '1', '100']);
  second.hasten('/g/s1');
  expect([text('g/s1/cpu.idle'), text('g/s1/cpu.weight')]).toEqual(['0', '1600']);
  rmSync(join(root, 'cgroup.controllers'));
  write({ 'cpu/g/s1/cpu.shares': '1024', 'cpu/g/s1/cpu.idle': '0' });
  const first = detectCgroups(root);
  const waits = [true, false, true].map(isHeavy => (first.weigh('/g/s1', isHeavy), text('cpu/g/s1/cpu.idle')));
  expect([...waits, text('cpu/g/s1/cpu.shares')]).toEqual(['1', '0', '1', '1024']);
  first.hasten('/g/s1');
  expect([text('cpu/g/s1/cpu.idle'), text('cpu/g/s1/cpu.shares')]).toEqual(['0', '16384']);
});

test('a group of version 2 is frozen when the kernel says so, and thawed also where it is gone', () => {
  write({
    'cgroup.controllers': 'cpu memory\n',
    'g/s1/cgroup.events': 'populated 1\nfrozen 1\n',
    'g/s2/cgroup.events': 'populated 1\nfrozen 0\n',
    'g/s1/cgroup.freeze': '',
  });
  const cgroups = detectCgroups(root);
  cgroups.freeze('/g/s1');
  expect([text('g/s1/cgroup.freeze'), cgroups.isFrozen('/g/s1'), cgroups.isFrozen('/g/s2')]).toEqual([
    '1',
    true,
    false,
  ]);
  cgroups.thaw('/g/s1');
  cgroups.thaw('/g/gone');
  expect(text('g/s1/cgroup.freeze')).toBe('0');
  expect(() => cgroups.freeze('/g/gone')).toThrow('ENOENT');
});

test('a group of version 1 is frozen when the kernel says so, and thawed also where it is gone', () => {
  write({ 'freezer/g/s1/freezer.state': 'FREEZING\n' });
  const cgroups = detectCgroups(root);
  expect(cgroups.isFrozen('/g/s1')).toBe(false);
  write({ 'freezer/g/s1/freezer.state': 'FROZEN\n' });
  expect(cgroups.isFrozen('/g/s1')).toBe(true);
  cgroups.thaw('/g/s1');
  cgroups.thaw('/g/gone');
  expect(text('freezer/g/s1/freezer.state')).toBe('THAWED');
  cgroups.freeze('/g/s1');
  expect(text('freezer/g/s1/freezer.state')).toBe('FROZEN');
});

test('killing a group of version 1 ends each process of it and below it, and thaws it', async () => {
  const children = [0, 1].map(() => Bun.spawn(['cat'], { stdin: 'pipe' }));
  const [own, below] = children.map(({ pid }) => `${pid}\n`);
  write({
    'memory/g/s1/cgroup.procs': own ?? '',
    'memory/g/s1/below/cgroup.procs': below ?? '',
    'freezer/g/s1/freezer.state': 'FROZEN\n',
  });
  const cgroups = detectCgroups(root);
  expect(cgroups.processes('/g/s1')).toEqual(children.map(({ pid }) => pid));
  expect([cgroups.isEmpty('/g/s1'), cgroups.isEmpty('/g/s2')]).toEqual([false, true]);
  cgroups.kill('/g/s1');
  await Promise.all(children.map(({ exited }) => exited));
  expect([children.map(({ signalCode }) => signalCode), text('freezer/g/s1/freezer.state')]).toEqual([
    ['SIGKILL', 'SIGKILL'],
    'THAWED',
  ]);
  // They are gone, but still listed.
  cgroups.kill('/g/s1');
});

test('groups and kills for lack of memory are listed and counted by either version', async () => {
  write({ 'memory/cgroup.procs': '', 'cpu/cgroup.procs': '', 'unified/cgroup.procs': '', 'other/file': '' });
  write({ 'memory/g/s1/memory.oom_control': 'oom_kill_disable 0\nunder_oom 0\noom_kill 3\n' });
  for (const path of ['cpu/g/s1', 'cpu/g/s2', 'unified/g/s3', 'other/g/s4'])
    mkdirSync(join(root, path), { recursive: true });
  const first = detectCgroups(root);
  expect([first.list('/g').sort(), first.outOfMemoryKills('/g/s1'), first.outOfMemoryKills('/g/s2')]).toEqual([
    ['s1', 's2'],
    3,
    0,
  ]);
  rmSync(join(root, 'memory/g/s1/memory.oom_control'));
  await first.remove('/g');
  expect(['memory/g', 'cpu/g', 'unified/g'].map(path => existsSync(join(root, path)))).toEqual([false, false, true]);
  write({ 'cgroup.controllers': 'cpu memory\n', 'g/s1/memory.events': 'oom 1\noom_kill 2\n', 'g/s2/file': '' });
  const second = detectCgroups(root);
  expect([second.list('/g').sort(), second.outOfMemoryKills('/g/s1')]).toEqual([['s1', 's2'], 2]);
});

test('a group whose processes are ending is removed when they have', async () => {
  write({ 'cgroup.controllers': 'cpu memory\n', 'g/s1/below/busy': '' });
  const cgroups = detectCgroups(root);
  let isRemoved = false;
  const removed = cgroups.remove('/g/s1').then(() => (isRemoved = true));
  await Bun.sleep(5);
  expect(isRemoved).toBe(false);
  rmSync(join(root, 'g/s1/below/busy'));
  await removed;
  expect(existsSync(join(root, 'g/s1'))).toBe(false);
  write({ 'g/s1': 'no group' });
  await expect(cgroups.remove('/g/s1')).rejects.toThrow('ENOTDIR');
});

test('a group of version 2 is made where every group above hands the controllers down', () => {
  write({ 'cgroup.controllers': 'cpu memory\n' });
  expect(detectCgroups(root).make('/g/s1', limited)).toEqual([join(root, 'g/s1')]);
  expect(['', 'g/'].map(path => text(`${path}cgroup.subtree_control`))).toEqual(Array(2).fill('+cpu +memory +pids'));
  expect([existsSync(join(root, 'g/s1/cgroup.subtree_control')), text('g/s1/pids.max')]).toEqual([false, '1024']);
});

test('a group of version 1 is made in each hierarchy, with processors and few devices', () => {
  const hierarchies = ['cpu', 'cpuset', 'devices', 'memory', 'pids'];
  for (const name of [...hierarchies, 'unified']) write({ [`${name}/cgroup.procs`]: '' });
  write({
    'other/file': '',
    ...{ 'cpuset/cpuset.cpus': '0-7\n', 'cpuset/cpuset.mems': '0\n' },
    ...{ 'cpuset/g/cpuset.cpus': '2\n', 'cpuset/g/cpuset.mems': '\n' },
    ...{ 'cpuset/g/s1/cpuset.cpus': '\n', 'cpuset/g/s1/cpuset.mems': '\n' },
    ...{ 'devices/g/s1/devices.deny': '', 'devices/g/s1/devices.allow': '' },
  });
  const groups = detectCgroups(root).make('/g/s1', limited);
  expect(groups.toSorted()).toEqual(hierarchies.map(name => join(root, name, 'g/s1')));
  expect([text('cpuset/g/cpuset.cpus'), text('cpuset/g/cpuset.mems')]).toEqual(['2\n', '0\n']);
  expect(text('cpuset/g/s1/cpuset.mems')).toBe('0\n');
  expect([text('devices/g/s1/devices.deny'), text('devices/g/s1/devices.allow')]).toEqual([
    'a',
    expect.stringMatching(/^c \d+:(\d+|\*) rwm$/),
  ]);
  expect([text('pids/g/s1/pids.max'), existsSync(join(root, 'unified/g'))]).toEqual(['1024', false]);
});

test('the processors of a group that was removed are the next one’s', async () => {
  const files = (path: string, names: string[]) =>
    write(Object.fromEntries(names.map(name => [`${path}/${name}`, ''])));
  const second = ['memory.max', 'cpu.max', 'pids.max', 'cpuset.cpus'];
  const first = ['memory.limit_in_bytes', 'cpu.cfs_quota_us', 'pids.max', 'cpuset.cpus'];
  const controllers = ['memory', 'cpu', 'pids', 'cpuset'];
  for (const version of ['v1', 'v2'] as const) {
    const groupOf = (name: string) => {
      if (version === 'v2') files(`g/${name}`, second);
      else
        for (const [index, controller] of controllers.entries()) files(`${controller}/g/${name}`, [first[index] ?? '']);
    };
    const cpuset = (name: string) => text(version === 'v2' ? `g/${name}/cpuset.cpus` : `cpuset/g/${name}/cpuset.cpus`);
    for (const controller of controllers) write({ [`${controller}/cgroup.procs`]: '' });
    if (version === 'v2') write({ 'cgroup.controllers': 'cpu memory\n' });
    groupOf('s1');
    groupOf('s2');
    const cgroups = detectCgroups(root);
    cgroups.setLimits('/g/s1', limited);
    const chosen = cpuset('s1');
    for (const folder of ['', ...controllers]) rmSync(join(root, folder, 'g/s1'), { recursive: true, force: true });
    await cgroups.remove('/g/s1');
    cgroups.setLimits('/g/s2', limited);
    expect([version, cpuset('s2')]).toEqual([version, chosen]);
  }
});
