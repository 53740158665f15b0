import { expect, test } from 'bun:test';
import { fillIdle } from './team.ts';

const span = (startSeconds: number, concurrent: number, latest: number) => ({
  startSeconds,
  concurrent,
  starts: 0,
  latest,
  sandboxSeconds: latest * 60,
});
const range = { startSeconds: 600, endSeconds: 1199 };
const values = (spans: ReturnType<typeof fillIdle>) =>
  spans.map(({ startSeconds, concurrent }) => [startSeconds, concurrent]);

test('idle time between rows is reported as nothing, time of which nothing is known is not reported', () => {
  // Known until 720, then idle; from 960 on two ran, and the platform was down before 1140.
  const spans = [span(660, 1, 1), span(720, 3, 0), span(960, 2, 2), span(1140, 2, 2)];
  expect(values(fillIdle(spans, null, range, 60))).toEqual([
    [660, 1],
    [720, 3],
    [780, 0],
    [840, 0],
    [900, 0],
    [960, 2],
    [1140, 2],
  ]);
});

test('what was before the range counts', () => {
  expect(fillIdle([], null, range, 300)).toEqual([]);
  expect(fillIdle([], 4, range, 300)).toEqual([]);
  expect(values(fillIdle([], 0, range, 300))).toEqual([
    [600, 0],
    [900, 0],
  ]);
});
