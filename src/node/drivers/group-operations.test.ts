import { expect, test } from 'bun:test';
import type { Cgroups } from '../cgroup/cgroup.ts';
import { slotOf } from '../layout.ts';
import { groupOperations } from './group-operations.ts';

test('a freeze that takes too long lets all go on, unless they are what was kept already', async () => {
  const done: string[] = [];
  const cgroups = {
    freeze: () => done.push('freeze'),
    thaw: () => done.push('thaw'),
    isFrozen: () => false,
  } as unknown as Cgroups;
  const operations = groupOperations(cgroups, () => '/group');
  const slot = slotOf(0, 1);
  const late = { code: 'unavailable', message: expect.stringContaining('can’t be frozen') };
  const isLate = (work: Promise<void>) => expect(work).rejects.toMatchObject(late);
  await isLate(operations.freeze(slot));
  expect(done).toEqual(['freeze', 'thaw']);
  operations.beginFreeze(slot);
  await isLate(operations.frozen(slot));
  expect(done).toEqual(['freeze', 'thaw', 'freeze']);
}, 20_000);
