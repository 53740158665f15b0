import { expect, test } from 'bun:test';
import type { NodeInfo } from '../../protocol/node.ts';
import { roomOf } from './room.ts';

const machine: NodeInfo = {
  nodeId: 'n',
  cpuCount: 2,
  memoryBytes: 4 * 2 ** 30,
  sandboxCount: 0,
  sandboxesMax: 100,
  driver: 'crun',
  memory: { kept: true },
  memoryByDriver: {},
};
const small = { cpuCount: 1, memoryMiB: 64 };

/** How many sandboxes of a size fit an empty machine. */
function countOf(info: NodeInfo, { cpuCount, memoryMiB } = small): number {
  for (let count = 0; ; count++) {
    const held = { cpuCount: count * cpuCount, memoryMiB: count * memoryMiB, sandboxes: count, starting: 0 };
    if (!roomOf(info, held).fits({ cpuCount, memoryMiB })) return count;
  }
}

test('CPUs are promised as often as the machine says, and by default four times', () => {
  expect(countOf(machine)).toBe(8);
  expect(countOf({ ...machine, cpuOvercommit: 1 })).toBe(2);
  expect(countOf({ ...machine, cpuOvercommit: 16 })).toBe(32);
});

test('memory and the number of sandboxes are limits all the same', () => {
  const large = { ...machine, memoryBytes: 4 * 2 ** 30, cpuOvercommit: 64 };
  expect(countOf(large, { cpuCount: 1, memoryMiB: 512 })).toBe(12);
  expect(countOf({ ...large, sandboxesMax: 5 })).toBe(5);
});

test('a refusal says how much is promised, and of how much', () => {
  const held = { cpuCount: 7, memoryMiB: 900, sandboxes: 3, starting: 0 };
  expect(roomOf(machine, held).text).toBe('7 of 8 CPUs and 900 of 6144 MiB are promised, to 3 sandboxes of 100');
  expect(roomOf(null, held).fits(small)).toBe(false);
});
