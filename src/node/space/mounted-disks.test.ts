import { expect, test } from 'bun:test';
import { parseMountedDisks } from './mounted-disks.ts';

const line = (point: string, source: string, options: string, root = '/') =>
  `31 23 7:3 ${root} ${point} rw,nosuid,nodev - ext4 ${source} ${options}`;

test('each disk below the folder is listed once, only as a whole mount, with whether it has given up', () => {
  const mountinfo = [
    line('/run/atoll/0/mounts/s1', '/dev/loop1', 'rw,discard'),
    line('/run/atoll/0/mounts/s1', '/dev/loop1', 'rw,discard'),
    line('/run/atoll/0/mounts/s2', '/dev/loop2', 'ro,discard'),
    line('/run/atoll/0/mounts/s3', '/dev/loop3', 'rw,emergency_ro'),
    line('/run/atoll/0/mounts/s4', '/dev/loop4', 'rw,shutdown'),
    line('/run/atoll/1/mounts/s5', '/dev/loop5', 'rw'),
    line('/run/atoll/0/mounts/part', '/dev/loop6', 'rw', '/upper'),
    '40 23 0:41 / /run/atoll/0/mounts/layers/ab ro - erofs /data/layer ro',
    'what is no line of it',
    '',
  ].join('\n');
  expect(parseMountedDisks(mountinfo, '/run/atoll/0/mounts').map(({ device, failed }) => [device, failed])).toEqual([
    ['loop1', false],
    ['loop2', true],
    ['loop3', true],
    ['loop4', true],
  ]);
});
