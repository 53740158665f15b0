import { expect, test } from 'bun:test';
import { AtollError } from '../../../base/error.ts';
import type { DurablePauses } from '../../blob/rules/pauses.ts';
import { pauseNotStored, requireDurability, requireDurable, usualDurability } from './durability.ts';

const fake = (requireUsable: () => void) => ({ requireUsable }) as DurablePauses;
const pauses = fake(() => {});
const without = { volumeMounts: [], member: 'durability' };
const withVolumes = { ...without, volumeMounts: ['one'] };

test('a sandbox has its team’s default durability, where possible', () => {
  for (const pauseDurability of ['node', 'cluster'] as const)
    expect(usualDurability(pauses, { pauseDurability }, [])).toBe(pauseDurability);
  const team = { pauseDurability: 'cluster' } as const;
  expect(usualDurability(null, team, [])).toBe('node');
  expect(usualDurability(pauses, team, ['one'])).toBe('node');
});

test('a pause on its machine is always possible, and needs no store', () => {
  const broken = fake(() => {
    throw new Error('nobody asks the store');
  });
  for (const one of [null, broken]) expect(requireDurability(one, 'node', withVolumes)).toBe(null);
});

test('a pause in the store needs one, and no volumes', () => {
  expect(requireDurable(pauses, 'cluster', without)).toBe(pauses);
  expect(requireDurability(pauses, 'cluster', without)).toBe(pauses);
  for (const refusing of [requireDurable, requireDurability]) {
    expect(() => refusing(null, 'cluster', without)).toThrow('durability: cluster needs a store');
    expect(() => refusing(pauses, 'cluster', withVolumes)).toThrow('durability: a sandbox with volumes stays');
  }
});

test('an unusable store is reported before anything is changed', () => {
  const cause = new AtollError('unavailable', 'the bucket is gone');
  const unusable = fake(() => {
    throw cause;
  });
  expect(() => requireDurability(unusable, 'cluster', without)).toThrow(
    expect.objectContaining({ code: 'unavailable', detail: pauseNotStored, cause }),
  );
  expect(requireDurable(unusable, 'cluster', without)).toBe(unusable);
});
