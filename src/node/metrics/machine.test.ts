import { expect, test } from 'bun:test';
import { diskUsage, machineFacts, observeMachine } from './machine.ts';

test('processors of both kinds are named', () => {
  const x86 =
    'processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: Some Xeon @ 2.5GHz\n';
  expect(machineFacts(x86, 'x86_64')).toEqual({
    cpuFamily: '6',
    cpuModel: '85',
    cpuModelName: 'Some Xeon @ 2.5GHz',
    cpuArchitecture: 'x86_64',
  });
  const arm = 'processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd0c\n';
  expect(machineFacts(arm, 'aarch64')).toEqual({
    cpuFamily: '8',
    cpuModel: '0xd0c',
    cpuModelName: '0x41',
    cpuArchitecture: 'aarch64',
  });
  expect(machineFacts('', 'riscv64')).toEqual({
    cpuFamily: '',
    cpuModel: '',
    cpuModelName: '',
    cpuArchitecture: 'riscv64',
  });
});

test('a disk is listed once, without loop devices, and the data directory’s file system whatever it is', () => {
  const mountinfo = [
    '1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw',
    '2 1 8:1 /var /usr rw,relatime - ext4 /dev/sda1 rw',
    '3 1 7:3 / /tmp rw,relatime - squashfs /dev/loop3 ro',
    '4 1 0:22 / /proc rw master:2 propagate_from:1 - proc proc rw',
    'garbage',
    '',
  ].join('\n');
  expect(diskUsage(mountinfo, '/usr/atoll').map(({ mountPoint, device }) => ({ mountPoint, device }))).toEqual([
    { mountPoint: '/usr', device: '/dev/sda1' },
  ]);
  expect(diskUsage(mountinfo, '/tmp/data').map(({ device }) => device)).toEqual(['/dev/loop3', '/dev/sda1']);
});

test('this machine has processors, memory and a disk', () => {
  const machine = observeMachine('/');
  const { cpuPercent, memoryUsedBytes, disks } = machine.usage();
  machine.stop();
  expect(cpuPercent).toBeGreaterThanOrEqual(0);
  expect(cpuPercent).toBeLessThanOrEqual(100);
  expect(memoryUsedBytes).toBeGreaterThan(1024 ** 2);
  expect(disks.length).toBeGreaterThan(0);
  for (const { usedBytes, totalBytes } of disks) expect(totalBytes).toBeGreaterThanOrEqual(usedBytes);
});
