import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bootSecondsOf } from './boot-time.ts';
import { laterLoad, loadavg } from './load.ts';
import { createOwnFiles, ownFiles, type Used } from './own-files.ts';
import { processorShares } from './processor-shares.ts';
import { cpuinfo, hostProcessors, online } from './processors.ts';

let directory: string;
beforeEach(() => (directory = mkdtempSync(join(tmpdir(), 'atoll-numbers-'))));
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const host = hostProcessors(
  [2, 3, 4, 5].map(id => `processor\t: ${id}\nmodel name\t: Some\nsiblings\t: 4\ncore id\t\t: ${id}\n\n`).join(''),
);
const resources = { cpuCount: 2, memoryMiB: 100, diskMiB: 1 };
const mib = 1024 ** 2;
const used: Used = {
  memory: {
    usedBytes: 60 * mib,
    anonBytes: 20 * mib,
    fileBytes: 40 * mib,
    sharedBytes: 10 * mib,
    mappedBytes: 0,
    dirtyBytes: 0,
    writebackBytes: 0,
    unevictableBytes: 0,
    anon: { active: 20 * mib, inactive: 0 },
    file: { active: 30 * mib, inactive: 10 * mib },
    slabBytes: { reclaimable: 0, unreclaimable: 0 },
  },
  times: { userSeconds: 2, systemSeconds: 1, idleSeconds: 97 },
  load: [1.5, 0.25, 0],
  tasks: 12,
  bootSeconds: 1_700_000_000,
};

test('a sandbox has the first processors, numbered from 0, of one package', () => {
  const text = cpuinfo(host, 2);
  expect(text.match(/^processor\t: \d+$/gm)).toEqual(['processor\t: 0', 'processor\t: 1']);
  expect(text).toContain('siblings\t: 2\ncore id\t\t: 1\n');
  expect([online(1), online(8)]).toEqual(['0\n', '0-7\n']);
});

test('free memory is what the limit leaves, and available is also what the kernel would give up', () => {
  const files = createOwnFiles(host);
  files.make(join(directory, 's1'), { bootId: 'x', resources });
  files.refresh(join(directory, 's1'), resources, used);
  const kib = (name: string) =>
    Number(new RegExp(`^${name}: +(\\d+) kB$`, 'm').exec(readFileSync(join(directory, 's1/meminfo'), 'utf8'))?.[1]);
  expect(['MemTotal', 'MemFree', 'MemAvailable', 'Cached', 'Shmem'].map(kib)).toEqual(
    [100, 40, 70, 40, 10].map(size => size * 1024),
  );
});

test('the work is shared out to the processors, and ages count from the boot', () => {
  const files = createOwnFiles(host);
  files.make(join(directory, 's1'), { bootId: 'x', resources });
  files.refresh(join(directory, 's1'), resources, used);
  const lines = readFileSync(join(directory, 's1/stat'), 'utf8').split('\n');
  expect(lines.slice(0, 3)).toEqual([
    'cpu  200 0 100 9700 0 0 0 0 0 0',
    'cpu0 100 0 50 4850 0 0 0 0 0 0',
    'cpu1 100 0 50 4850 0 0 0 0 0 0',
  ]);
  expect(lines).toContain('btime 1700000000');
  expect(readFileSync(join(directory, 's1/loadavg'), 'utf8')).toStartWith('1.50 0.25 0.00 1/12 12 ');
});

test('every file is there from the start, and none that changes gets another length or another inode', () => {
  const files = createOwnFiles(host);
  const path = join(directory, 's1');
  files.make(path, { bootId: 'x', resources });
  expect(readdirSync(path).sort()).toEqual(Object.values(ownFiles).sort());
  const looks = () =>
    readdirSync(path).map(name => [name, statSync(join(path, name)).size, statSync(join(path, name)).ino]);
  const before = looks();
  files.refresh(path, resources, used);
  expect(looks()).toEqual(before);
  files.resize(path, { ...resources, cpuCount: 1 });
  expect(readFileSync(join(path, 'stat'), 'utf8').match(/^cpu\d/gm)).toEqual(['cpu0']);
});

test('load forgets: what was busy a minute ago is a third of it', () => {
  const [one, five, fifteen] = laterLoad([2, 2, 2], 0, 60);
  expect(one).toBeCloseTo(2 / Math.E, 5);
  expect(one).toBeLessThan(five);
  expect(five).toBeLessThan(fifteen);
  expect(loadavg([0, 0, 0], 1).length).toBe(loadavg([1234.5, 99.99, 4], 4000).length);
});

test('a time namespace moves the boot, and without one it is the host’s', () => {
  const stat = 'cpu 1 2\nbtime 1000\nprocesses 5\n';
  expect(bootSecondsOf(stat, 'monotonic           0         0\nboottime         -300         0\n')).toBe(1300);
  expect(bootSecondsOf(stat, '')).toBe(1000);
});

test('how busy processors are is reported for the time since the last question', () => {
  const texts = ['cpu0 10 0 0 90 0 0 0 0\n', 'cpu0 10 0 0 190 0 0 0 0\n', 'cpu0 60 0 0 240 0 0 0 0\n'];
  const shares = processorShares(() => texts.shift() as string);
  expect([shares().get(0), shares().get(0)]).toEqual([0, 0.5]);
});
