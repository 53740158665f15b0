import { expect, test } from 'bun:test';
import type { SandboxSample } from '../../protocol/node-usage.ts';
import { downSample } from './down-sample.ts';

const sample = (atSeconds: number, more: Partial<SandboxSample> = {}): SandboxSample => ({
  atSeconds,
  cpuCount: 2,
  cpuUsedPct: 10,
  memUsed: 100,
  memTotal: 1000,
  memCache: 50,
  diskUsed: 10,
  diskTotal: 100,
  ...more,
});
const all = { startSeconds: 0, endSeconds: Number.MAX_SAFE_INTEGER, pointsMax: 1000 };

test('few samples come as they are, both ends of the range included', () => {
  const samples = [0, 5, 10, 15].map(at => sample(1000 + at));
  expect(downSample(samples, { ...all, startSeconds: 1005, endSeconds: 1010 })).toEqual(samples.slice(1, 3));
  expect(downSample(samples, all)).toEqual(samples);
  expect(downSample(samples, { ...all, startSeconds: 2000 })).toEqual([]);
  expect(downSample([], all)).toEqual([]);
});

test('many are merged into spans of equal length: mean CPU, memory where most was used, highest disk', () => {
  const samples = [
    sample(1000, { cpuUsedPct: 0, memUsed: 900, memCache: 1, diskUsed: 5 }),
    sample(1005, { cpuUsedPct: 50, memUsed: 10, memCache: 700, diskUsed: 9 }),
    sample(1010, { cpuUsedPct: 100 }),
    sample(1015, { cpuUsedPct: 20 }),
  ];
  const [first, second, ...more] = downSample(samples, { ...all, pointsMax: 2 });
  expect(first).toEqual(sample(1000, { cpuUsedPct: 25, memUsed: 900, memCache: 1, diskUsed: 9 }));
  expect(second).toEqual(sample(1010, { cpuUsedPct: 60 }));
  expect(more).toEqual([]);
});

test('never more than asked for, also of a day with a gap and a clock that went back', () => {
  const day = Array.from({ length: 17_280 }, (_, index) =>
    sample(1_000_000 + index * 5 + (index > 9_000 ? 40_000 : 0) - (index > 12_000 ? 7 : 0)),
  );
  const points = downSample(day, all);
  expect(points.length).toBeLessThanOrEqual(1000);
  expect(points.length).toBeGreaterThan(500);
  const times = points.map(point => point.atSeconds);
  expect(times).toEqual(times.toSorted((a, b) => a - b));
  expect(new Set(times).size).toBe(times.length);
});
