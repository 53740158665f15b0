import { expect, test } from 'bun:test';
import { fullAt, NodeHistory, nodeSamplesMax } from './node-history.ts';

const every = (count: number, of: (index: number) => number) =>
  Array.from({ length: count }, (_, index) => ({ x: index * 60, y: of(index) }));

test('a disk that grows steadily is full when its line meets its size', () => {
  // At a byte a second, 200 of 1,000 bytes are left after 800 s.
  expect(
    fullAt(
      every(21, index => index * 60 - 400),
      1_000,
    ),
  ).toBe(20 * 60 + 200);
});

test('there is no forecast for a disk that shrinks, hardly grows, or was seen too briefly', () => {
  expect(
    fullAt(
      every(21, index => 5_000 - index),
      10_000,
    ),
  ).toBeNull();
  expect(
    fullAt(
      every(21, index => index / 1_000),
      10 ** 9,
    ),
  ).toBeNull();
  expect(
    fullAt(
      every(5, index => index * 100),
      1_000,
    ),
  ).toBeNull();
  expect(fullAt([], 1_000)).toBeNull();
});

test('a day is kept for each node, with the forecast of its disks', () => {
  const history = new NodeHistory();
  for (let minute = 0; minute < nodeSamplesMax + 10; minute++)
    history.add('n', {
      atSeconds: minute * 60,
      cpuPercent: 1,
      memoryUsedBytes: 1,
      memoryTotalBytes: 2,
      disks: [{ mountPoint: '/', usedBytes: minute * 60, totalBytes: 1_000_000 }],
    });
  expect(history.of('n')).toHaveLength(nodeSamplesMax);
  expect(history.of('n')[0]?.atSeconds).toBe(600);
  expect(history.forecast('n')).toMatchObject([{ nodeId: 'n', mountPoint: '/', fullAtSeconds: 1_000_000 }]);
  expect(history.forecast('unknown')).toEqual([]);
});
