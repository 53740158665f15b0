import { expect, test } from 'bun:test';
import { Recent, recentSeconds } from './recent.ts';

test('percentiles are those of the creates that succeeded within the hour', () => {
  const recent = new Recent();
  recent.created('ok', 100, 0);
  const nowMs = recentSeconds * 1_000 + 1;
  for (let index = 1; index <= 200; index++) recent.created('ok', index / 100, nowMs);
  for (const cause of ['unavailable', 'no_space', 'unavailable']) recent.created('failed', 9, nowMs, cause);
  recent.created('refused', 9, nowMs);
  const causes = [
    { cause: 'unavailable', count: 2 },
    { cause: 'no_space', count: 1 },
  ];
  expect(recent.creates(nowMs)).toEqual({ succeeded: 200, failed: 3, p50Seconds: 1, p99Seconds: 1.98, causes });
  const none = { succeeded: 0, failed: 0, p50Seconds: null, p99Seconds: null, causes: [] };
  expect(recent.creates(nowMs * 3)).toEqual(none);
});

test('a reconciler has its last round, and the time of its last failure', () => {
  const recent = new Recent();
  recent.reconciled('b', 'failed', 1);
  recent.reconciled('b', 'ok', 2);
  recent.reconciled('a', 'ok', 3);
  expect(recent.rounds()).toEqual([
    { name: 'a', atMs: 3, ok: true, runs: 1, failures: 0, failedAtMs: null },
    { name: 'b', atMs: 2, ok: true, runs: 2, failures: 1, failedAtMs: 1 },
  ]);
});
