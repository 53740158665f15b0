import { expect, test } from 'bun:test';
import { poolSizeFor } from './pool-size.ts';

const gib = 2 ** 30;

test('a pool is as large as somebody says, and else grows with the machine’s memory', () => {
  expect(poolSizeFor(0, 24 * gib)).toEqual({ size: 0 });
  expect(poolSizeFor(7, 24 * gib)).toEqual({ size: 7 });
  expect(poolSizeFor(undefined, gib)).toEqual({ size: 4, roomySize: 4 });
  expect(poolSizeFor(undefined, 8 * gib)).toEqual({ size: 4, roomySize: 32 });
  expect(poolSizeFor(undefined, 256 * gib)).toEqual({ size: 4, roomySize: 96 });
});
