import { afterEach, beforeEach, expect, jest, test } from 'bun:test';
import { createLog } from '../../base/telemetry/log.ts';
import { loopWrites, type LoopWrites } from './loop-writes.ts';
import type { MountedDisk } from './mounted-disks.ts';
import { burstBytes, startPacing } from './write-pace.ts';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

const MiB = 2 ** 20;
const bytesPerSecond = 100 * MiB;
const lookMs = 500;

/** Disks on loop devices, and the paces that the kernel was told. */
function node({ left = [] as number[] } = {}) {
  const written = new Map<string, number>(left.map(number => [`loop${number}`, 0]));
  const limited = new Map<string, number>(left.map(number => [`7:${number}`, 1]));
  const told: string[] = [];
  const logged: string[] = [];
  const state = { usedUs: 0, awaited: '', fault: '', asked: 0 };
  const disks = left.map((number): MountedDisk => ({ device: `loop${number}`, point: '/mnt/s1', failed: false }));
  const { stop } = startPacing({
    group: '/atoll0',
    cgroups: {
      limitWrites(path, device, bytes) {
        if (state.fault) throw new Error(state.fault);
        told.push(`${path} ${device} ${bytes === undefined ? 'lifted' : `${bytes / MiB} MiB/s`}`);
        if (bytes === undefined) limited.delete(device);
        else limited.set(device, bytes);
      },
      limitedDevices: () => [...limited.keys()],
      cpuUs: () => state.usedUs,
      forget() {},
    },
    disks: () => disks,
    isAwaited: point => point === state.awaited,
    bytesPerSecond,
    log: createLog('debug', line => logged.push(line)),
    writes() {
      state.asked++;
      return [...written].map(([name, bytes]): LoopWrites => ({ name, device: `7:${name.slice(4)}`, bytes }));
    },
  });
  return {
    told,
    logged,
    limited,
    state,
    disks,
    stop,
    /** Makes a device with a disk visible. */
    mount(number: number, point: string) {
      written.set(`loop${number}`, written.get(`loop${number}`) ?? 10 * burstBytes);
      disks.push({ device: `loop${number}`, point, failed: false });
      this.look();
    },
    write: (number: number, bytes: number) =>
      void written.set(`loop${number}`, (written.get(`loop${number}`) ?? 0) + bytes),
    look(times = 1) {
      for (; times > 0; times--) {
        state.usedUs += 1e6;
        jest.advanceTimersByTime(lookMs);
      }
    },
    [Symbol.dispose]: stop,
  };
}

test('a disk that is written to on and on has a pace, until half of what it may have at once is back', () => {
  using it = node();
  it.mount(7, '/mnt/s1');
  it.write(7, burstBytes - MiB);
  it.look();
  expect(it.told).toEqual([]);
  // More than what was credited meanwhile.
  it.write(7, 60 * MiB);
  it.look();
  expect(it.told).toEqual(['/atoll0 7:7 100 MiB/s']);
  // As much as it may write: no credit comes back.
  for (let looks = 0; looks < 40; looks++) {
    it.write(7, 50 * MiB);
    it.look();
  }
  expect([...it.limited]).toEqual([['7:7', bytesPerSecond]]);
  it.look(10);
  expect(it.limited.size).toBe(1);
  it.look(1);
  expect(it.limited.size).toBe(0);
  expect(it.told.at(-1)).toBe('/atoll0 7:7 lifted');
});

test('one that writes no more than the pace on average is let alone', () => {
  using it = node();
  it.mount(7, '/mnt/s1');
  for (let looks = 0; looks < 40; looks++) {
    it.write(7, looks % 10 === 0 ? 500 * MiB : 0);
    it.look();
  }
  expect(it.told).toEqual([]);
});

test('a disk that somebody waits for is written as fast as the host takes it', () => {
  using it = node();
  it.mount(7, '/mnt/s1');
  it.write(7, burstBytes * 2);
  it.look();
  expect(it.limited.size).toBe(1);
  it.state.awaited = '/mnt/s1';
  it.write(7, burstBytes);
  it.look();
  expect(it.limited.size).toBe(0);
  it.state.awaited = '';
  it.write(7, burstBytes);
  it.look();
  expect(it.limited.size).toBe(1);
});

test('a device that is free again, or has another disk, has no pace of the one before', () => {
  using it = node();
  it.mount(7, '/mnt/s1');
  it.mount(8, '/mnt/s2');
  for (const number of [7, 8]) it.write(number, burstBytes * 2);
  it.look();
  expect([...it.limited.keys()]).toEqual(['7:7', '7:8']);
  it.disks.splice(0, 2, { device: 'loop8', point: '/mnt/s3', failed: false });
  it.look();
  expect(it.limited.size).toBe(0);
  // The new disk may write as much at once as any.
  it.write(8, burstBytes);
  it.look(2);
  expect(it.limited.size).toBe(0);
});

test('devices that others on the host write to have no pace', () => {
  using it = node();
  it.write(9, 1);
  it.look();
  it.write(9, burstBytes * 3);
  it.look();
  expect(it.told).toEqual([]);
});

test('a limit that another installation lifts is set again, and one that an earlier process left is lifted', () => {
  using it = node({ left: [7] });
  expect(it.told).toEqual(['/atoll0 7:7 lifted']);
  it.look();
  it.write(7, burstBytes * 2);
  it.look();
  it.limited.clear();
  it.write(7, 50 * MiB);
  it.look();
  expect(it.limited.get('7:7')).toBe(bytesPerSecond);
});

test('the end lifts all, and looks no more', () => {
  const it = node();
  it.mount(7, '/mnt/s1');
  it.write(7, burstBytes * 2);
  it.look();
  it.stop();
  expect(it.limited.size).toBe(0);
  it.write(7, burstBytes * 2);
  it.look(3);
  expect(it.limited.size).toBe(0);
});

test('while nobody does anything, nobody is looked at', () => {
  using it = node();
  it.mount(7, '/mnt/s1');
  const asked = it.state.asked;
  jest.advanceTimersByTime(60_000);
  expect(it.state.asked).toBe(asked);
});

test('a host without such limits is reported once', () => {
  using it = node();
  it.state.fault = 'ENOENT';
  it.mount(7, '/mnt/s1');
  it.write(7, burstBytes * 2);
  it.look(3);
  expect(it.logged).toHaveLength(1);
  expect(it.logged[0]).toContain('ENOENT');
});

test('written bytes are read from the kernel’s counts', () => {
  const lines = [
    ' 253       0 vda 1 2 3 4 5 6 70 8 9 10 11',
    '   7     112 loop7 1 2 3 4 5 6 70 8 9 10 11 0 0',
    '   7  16 loop1 0 0 0 0 0 0 0 0 0 0 0\n',
  ];
  expect(loopWrites(lines.join('\n'))).toEqual([
    { name: 'loop7', device: '7:112', bytes: 70 * 512 },
    { name: 'loop1', device: '7:16', bytes: 0 },
  ]);
  expect(loopWrites().every(({ bytes }) => bytes >= 0)).toBe(true);
});
