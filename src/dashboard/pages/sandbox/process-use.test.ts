import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { cpuPercent, takenOf, userName } from './process-use.ts';

const stat = (name: string, utime: number, stime: number) =>
  `12 (${name}) S 1 12 12 0 -1 4194304 120 0 0 0 ${utime} ${stime} 7 8 20 0 1 0 100 1000 250`;
const status = 'Name:\tbash\nUid:\t1000\t1000\t1000\t1000\nVmRSS:\t    2048 kB\n';

test('processor time, memory and user are read beside a name that would mislead', () => {
  expect(takenOf(stat('a) b (c', 30, 12), status)).toEqual({ ticks: 42, memoryBytes: 2 * 1024 ** 2, userId: 1000 });
  // One that has ended.
  expect(takenOf(stat('bash', 1, 1), 'Uid:\t0\t0\t0\t0\n')).toEqual({ ticks: 2, memoryBytes: 0, userId: 0 });
  expect(takenOf('', '')).toBeNull();
});

test('the kernel’s own words are understood', () => {
  const own = takenOf(readFileSync('/proc/self/stat', 'utf8'), readFileSync('/proc/self/status', 'utf8'));
  expect(own?.userId).toBe(process.getuid?.() ?? -1);
  expect(own?.memoryBytes).toBeGreaterThan(1024 ** 2);
  expect(own?.ticks).toBeGreaterThanOrEqual(0);
});

test('a processor that is busy for the whole time is 100 %', () => {
  const [before, now] = [stat('x', 100, 0), stat('x', 350, 50)].map(each => takenOf(each, status));
  if (before && now) expect(cpuPercent(before, now, 3000)).toBeCloseTo(100);
  expect(before && now).toBeTruthy();
});

test('users have the names that the sandbox gives them', () => {
  const passwd = 'root:x:0:0::/root:/bin/bash\nuser:x:1000:1000::/home/user:/bin/bash\n';
  expect([0, 1000, 33].map(id => userName(passwd, id))).toEqual(['root', 'user', '33']);
});
