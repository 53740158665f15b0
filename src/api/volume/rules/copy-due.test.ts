import { expect, test } from 'bun:test';
import type { VolumeRecord } from '../record.ts';
import { isCopyDue } from './copy-due.ts';

const second = 1_000_000;
const copiedAt = (changedAtMs: number | null): VolumeRecord => ({
  volumeId: 'v',
  teamId: 't',
  nodeId: 'n',
  name: 'name',
  sizeMiB: 64,
  createdAtUs: 0,
  movingTo: null,
  copy: changedAtMs === null ? null : { copyId: 'c', copiedAtUs: 1000 * second, changeUs: changedAtMs * 1000 },
});
const state = (changedAtMs: number, isInSandbox = false) => ({ volumeId: 'v', isInSandbox, changedAtMs });

test('a volume without a copy is copied, and one that has not changed since is not', () => {
  expect(isCopyDue(copiedAt(null), state(5), 0)).toBe(true);
  expect(isCopyDue(copiedAt(5), state(5), 1_000_000 * second)).toBe(false);
  // As file systems report it, in fractions of a millisecond.
  expect(isCopyDue(copiedAt(5.25), state(5.25), 1_000_000 * second)).toBe(false);
});

test('a changed volume is copied half a minute after its last copy, and in a sandbox a quarter of an hour', () => {
  for (const [isInSandbox, seconds] of [
    [false, 30],
    [true, 900],
  ] as const) {
    expect(isCopyDue(copiedAt(5), state(6, isInSandbox), (1000 + seconds - 1) * second)).toBe(false);
    expect(isCopyDue(copiedAt(5), state(6, isInSandbox), (1000 + seconds) * second)).toBe(true);
  }
});
