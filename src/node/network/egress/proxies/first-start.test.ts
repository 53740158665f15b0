import { expect, test } from 'bun:test';
import { messageOf } from '../../../../base/error.ts';
import { FirstStart } from './first-start.ts';

test('a caller that waits too long gets the reason, and one that comes when it serves continues', async () => {
  const start = new FirstStart({ startMs: 1_000, laterMs: 20 });
  const early = start.wait().catch(messageOf);
  start.fail('port 3128 is taken');
  expect(await early).toBe('the egress proxy did not start in time: port 3128 is taken');
  const startedAt = performance.now();
  expect(await start.wait().catch(messageOf)).toContain('port 3128');
  expect(performance.now() - startedAt).toBeLessThan(1_000);
  const later = start.wait();
  start.succeed();
  await later;
  await start.wait();
});
