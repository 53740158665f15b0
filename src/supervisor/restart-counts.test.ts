import { expect, test } from 'bun:test';
import { RestartCounts } from './restart-counts.ts';

test('each process is counted by the reason of its restarts, and others are zero', () => {
  const counts = new RestartCounts();
  counts.count('api', 'ended');
  counts.count('api', 'ended');
  counts.count('gate', 'stalled');
  const found = counts.counts();
  expect(found).toHaveLength(8);
  expect(found.filter(({ count }) => count > 0)).toEqual([
    { process: 'api', reason: 'ended', count: 2 },
    { process: 'gate', reason: 'stalled', count: 1 },
  ]);
  const { kind, samples } = counts.metric();
  expect(kind).toBe('counter');
  expect(samples).toContainEqual({ labels: { process: 'api', reason: 'ended' }, value: 2 });
  expect(samples).toContainEqual({ labels: { process: 'node', reason: 'ended' }, value: 0 });
});
