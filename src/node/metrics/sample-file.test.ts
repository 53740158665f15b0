import { afterEach, beforeEach, expect, test } from 'bun:test';
import { appendFileSync, mkdtempSync, renameSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SandboxSample } from '../../protocol/node-usage.ts';
import { openSampleFile, readLastSample, readSamples, removeSamples } from './sample-file.ts';

let dir: string;
let path: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'atoll-samples-'));
  path = join(dir, 'sandbox');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const sample = (atSeconds: number): SandboxSample => ({
  atSeconds,
  cpuCount: 8,
  cpuUsedPct: 99.97,
  memUsed: 4096 * 3,
  memTotal: 512 * 1024 ** 2,
  memCache: 4096,
  diskUsed: 3 * 1024 ** 4,
  diskTotal: 4 * 1024 ** 4 - 1024,
});

test('what is read is what was written, and nothing where nothing was', () => {
  expect(readSamples(path)).toEqual([]);
  expect(readLastSample(path)).toBeUndefined();
  const file = openSampleFile(path, 100);
  const written = [1, 2, 3].map(sample);
  written.forEach(file.append);
  expect(readSamples(path)).toEqual(written);
  expect(readLastSample(path)).toEqual(sample(3));
  removeSamples(path);
  expect(readSamples(path)).toEqual([]);
});

test('a range has its own samples, both ends included, of both files', () => {
  const file = openSampleFile(path, 3);
  [1, 2, 3, 4, 5].map(sample).forEach(file.append);
  const read = (startSeconds: number, endSeconds: number) =>
    readSamples(path, { startSeconds, endSeconds }).map(({ atSeconds }) => atSeconds);
  expect([read(2, 4), read(0, 1), read(6, 9), read(5, 5)]).toEqual([[2, 3, 4], [1], [], [5]]);
});

test('at least so many are kept, and at most twice as many', () => {
  const file = openSampleFile(path, 10);
  for (let at = 1; at <= 95; at++) {
    file.append(sample(at));
    const kept = readSamples(path).map(({ atSeconds }) => atSeconds);
    expect(kept.length).toBeGreaterThanOrEqual(Math.min(at, 10));
    expect(kept.length).toBeLessThanOrEqual(20);
    expect(kept).toEqual(kept.map((_, index) => at - kept.length + 1 + index));
  }
  expect(statSync(path).size).toBeLessThanOrEqual(10 * 32);
});

test('a record that a crash cut off or left empty is ignored, and the next one is whole', () => {
  openSampleFile(path, 100).append(sample(1));
  appendFileSync(path, Buffer.alloc(32));
  appendFileSync(path, Buffer.alloc(7, 0xff));
  const file = openSampleFile(path, 100);
  expect(readSamples(path)).toEqual([sample(1)]);
  expect(readLastSample(path)).toEqual(sample(1));
  file.append(sample(2));
  expect(readSamples(path)).toEqual([sample(1), sample(2)]);
});

test('the last sample is also found where a new file has only just begun', () => {
  const file = openSampleFile(path, 200);
  for (let at = 1; at <= 200; at++) file.append(sample(at));
  expect(readLastSample(path)).toEqual(sample(200));
  renameSync(path, `${path}.old`);
  expect(readLastSample(path)).toEqual(sample(200));
});
