import { expect, test } from 'bun:test';
import { compareSteps, stepsOf } from './steps.ts';

const log = (...messages: string[]) => messages.map(message => ({ message }));

test('steps are read with their time, whether they were found, and whether they failed', () => {
  const steps = stepsOf(
    log(
      'CACHED [1/3] RUN apt-get install make',
      '[2/3] RUN make',
      'compiling [x] done in 9 s',
      '[2/3] done in 1.5 s',
      '[3/3] RUN make test',
      '[3/3] failed after 250 ms',
    ),
  );
  expect(steps.map(({ what, tookMs, isCached, hasFailed }) => [what, tookMs, isCached, hasFailed])).toEqual([
    ['RUN apt-get install make', null, true, false],
    ['RUN make', 1500, false, false],
    ['RUN make test', 250, false, true],
  ]);
});

test('steps that do the same are beside each other, and others alone', () => {
  const here = stepsOf(log('[1/2] RUN a', '[2/2] RUN b'));
  const there = stepsOf(log('[1/2] RUN b', '[2/2] RUN c'));
  expect(compareSteps(here, there).map(pair => [pair.here?.what ?? null, pair.there?.what ?? null])).toEqual([
    ['RUN a', null],
    ['RUN b', 'RUN b'],
    [null, 'RUN c'],
  ]);
});
