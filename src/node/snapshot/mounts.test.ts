import { expect, test } from 'bun:test';
import { externalOption, looserMounts, mountSource, sandboxMounts, sourceOption } from './mounts.ts';

const line = (point: string, type: string) => `100 90 0:40 / ${point} rw,nosuid - ${type} source rw`;
const sources = {
  agentDir: '/run/agent',
  ownFilesDir: '/run/own',
  sysDir: '/run/sys',
  cgroupPath: '/atoll0/s7',
  emptyDir: '/run/empty',
  volumes: { '/mnt/my data': '/run/volume' },
};

test('a mount that belongs to a sandbox alone is not external', () => {
  const own = [
    line('/', 'overlay'),
    line('/proc', 'proc'),
    line('/proc/sys', 'proc'),
    line('/dev', 'tmpfs'),
    line('/dev/shm', 'tmpfs'),
    line('/dev/pts', 'devpts'),
    line('/sys', 'sysfs'),
    line('/dev/mqueue', 'mqueue'),
    line('/sys/fs/cgroup', 'tmpfs'),
  ];
  const mounts = sandboxMounts(`${own.join('\n')}\n`);
  expect(mounts.length).toBe(own.length);
  expect(mounts.filter(({ external }) => external)).toEqual([]);
});

test('every other mount is, also with optional fields and escaped names', () => {
  const info = [
    '100 90 8:1 /agent /.agent ro,nosuid,nodev shared:1 master:2 - ext4 /dev/sda rw',
    line('/dev/null', 'devtmpfs'),
    line('/proc/acpi', 'tmpfs'),
    line('/sys/fs/cgroup/memory', 'cgroup'),
    line('/mnt/my\\040data', 'ext4'),
  ];
  const mounts = sandboxMounts(info.join('\n'));
  expect(mounts[0]).toEqual({ point: '/.agent', external: true, key: 'm0', restrictions: ['ro', 'nosuid', 'nodev'] });
  const points = mounts.map(({ point }) => point);
  expect(points).toEqual(['/.agent', '/dev/null', '/proc/acpi', '/sys/fs/cgroup/memory', '/mnt/my data']);
  expect(points.map(point => mountSource(point, sources))).toEqual([
    '/run/agent',
    '/dev/null',
    '/run/empty',
    '/sys/fs/cgroup/memory/atoll0/s7',
    '/run/volume',
  ]);
});

test('masked files, masked directories and the sandbox’s own files each get their own', () => {
  const points = [
    '/proc/kmsg',
    '/sys/firmware',
    '/proc/scsi',
    '/proc/sys/kernel/random/boot_id',
    '/proc/meminfo',
    '/sys/fs/cgroup',
  ];
  expect(points.map(point => mountSource(point, sources))).toEqual([
    '/dev/null',
    '/run/empty',
    '/run/empty',
    '/run/own/boot-id',
    '/run/own/meminfo',
    '/sys/fs/cgroup/atoll0/s7',
  ]);
});

test('a mount that nobody knows is not put back as something else', () => {
  expect(() => mountSource('/home/user', sources)).toThrow('/home/user');
});

test('a mount that came back with fewer restrictions is noticed, and so is one that did not come back', () => {
  const wanted = [['/a', 'ro', 'nosuid'], ['/b'], ['/c', 'ro'], ['/d', 'ro']].map(([point = '', ...restrictions]) => ({
    point,
    external: true,
    restrictions,
  }));
  const present = [
    '1 0 8:1 / /a rw,nosuid - ext4 x rw',
    '2 0 8:1 / /b rw - ext4 x rw',
    '3 0 8:1 / /c ro,noexec - ext4 x rw',
  ].join('\n');
  expect(looserMounts(wanted, present).map(({ point }) => point)).toEqual(['/a', '/d']);
});

test('if two mounts share a point, the restrictions of both count', () => {
  expect(sandboxMounts(`${line('/x', 'ext4')}\n101 90 0:40 / /x ro - ext4 y rw`)).toEqual([
    { point: '/x', external: true, key: 'm0', restrictions: ['ro', 'nosuid'] },
  ]);
});

test('CRIU gets a key for a mount, and no name that it would read as something else', () => {
  const mount = { point: '/mnt/my data', external: true, key: 'm3', restrictions: [] };
  expect(externalOption(mount)).toBe('external "mnt[/mnt/my data]:m3"');
  expect(sourceOption(mount, sources)).toBe('external mnt[m3]:/run/volume');
  for (const point of ['/a]:/t', '/a:b', '/t]', '/a\tb', '/a\nb', '/a\x7f'])
    expect(() => externalOption({ ...mount, point })).toThrow('mount point');
  const earlier = { point: '/mnt/my data', external: true, restrictions: [] };
  expect(sourceOption(earlier, sources)).toBe('external "mnt[/mnt/my data]:/run/volume"');
});
