import { expect, test } from 'bun:test';
import { createStepQuestions } from './step-questions.ts';

test('a question waits for its answer, and wakes the reader of the build’s progress', async () => {
  let woken = 0;
  const questions = createStepQuestions(() => woken++);
  const { signal } = new AbortController();
  const [one, two] = [questions.ask('one', signal), questions.ask('two', signal)];
  expect([woken, questions.first()]).toEqual([2, 'one']);
  questions.answer('none of these', { layer: null });
  questions.answer('one', { layer: 'sha256:a' });
  expect(await one).toEqual({ layer: 'sha256:a' });
  expect(questions.first()).toBe('two');
  questions.answer('two', null);
  expect(await two).toBeUndefined();
  expect(questions.first()).toBeUndefined();
});

test('a build that ends asks no more', async () => {
  const questions = createStepQuestions(() => {});
  const ending = new AbortController();
  const asked = questions.ask('one', ending.signal);
  ending.abort();
  expect(await asked).toBeUndefined();
  expect(questions.first()).toBeUndefined();
});
