import { expect, test } from 'bun:test';
import { createAfterAnswer } from './after-answer.ts';

test('work waits for the answer, and runs by itself then, in its order and once', async () => {
  const afterAnswer = createAfterAnswer();
  const done: string[] = [];
  afterAnswer.later(() => done.push('first'));
  afterAnswer.later(() => done.push('second'));
  await Promise.resolve();
  expect(done).toEqual([]);
  await new Promise(resolve => setImmediate(resolve));
  expect(done).toEqual(['first', 'second']);
  await new Promise(resolve => setImmediate(resolve));
  expect(done).toEqual(['first', 'second']);
});

test('a request that comes first has the work done before it', async () => {
  const afterAnswer = createAfterAnswer();
  const done: string[] = [];
  afterAnswer.later(() => done.push('work'));
  afterAnswer.settle();
  expect(done).toEqual(['work']);
  await new Promise(resolve => setImmediate(resolve));
  expect(done).toEqual(['work']);
});
