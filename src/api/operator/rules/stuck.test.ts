import { expect, test } from 'bun:test';
import { ChangeWatch, stuckSeconds } from './stuck.ts';

const sandbox = { sandboxId: 's', executionId: 'e', teamId: 't', nodeId: 'n', state: 'pausing' } as const;
const limitUs = stuckSeconds * 1_000_000;

test('a sandbox is stuck if it was seen in one transition for long, and no more once it has gone on', () => {
  const watch = new ChangeWatch();
  watch.look([sandbox], 5);
  watch.look([sandbox, { ...sandbox, executionId: 'later' }], limitUs);
  expect(watch.stuckAt(limitUs + 4)).toEqual([]);
  expect(watch.stuckAt(limitUs + 5)).toEqual([{ ...sandbox, sinceUs: 5 }]);
  watch.look([{ ...sandbox, state: 'killing' }], limitUs + 6);
  expect(watch.stuckAt(limitUs + 7)).toEqual([]);
});
