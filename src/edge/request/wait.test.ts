import { afterEach, beforeEach, expect, jest, test } from 'bun:test';
import { Wait } from './wait.ts';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

const code = (expected: string) => expect.objectContaining({ code: expected });
const turn = async () => {
  for (let i = 0; i < 10; i++) await Promise.resolve();
};

function waiting(timeoutMs = 1000) {
  const abort = new AbortController();
  const wait = new Wait([new AbortController().signal, abort.signal]);
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const undone: string[] = [];
  const begin = () => wait.for(promise, timeoutMs, late => void undone.push(late));
  return { abort, wait, resolve, reject, undone, begin };
}

test('what is waited for comes, or fails as it does, and nothing is undone', async () => {
  const good = waiting();
  const found = good.begin();
  good.resolve('it');
  expect(await found).toBe('it');
  good.abort.abort();
  jest.advanceTimersByTime(1000);
  await turn();
  expect(good.undone).toEqual([]);
  const bad = waiting();
  const failed = bad.begin();
  bad.reject(new Error('refused'));
  await expect(failed).rejects.toThrow('refused');
});

test('a result that takes too long is given up, and undone when it comes', async () => {
  const { begin, resolve, undone } = waiting(500);
  const late = begin();
  let isOver = false;
  late.catch(() => (isOver = true));
  jest.advanceTimersByTime(499);
  await turn();
  expect(isOver).toBe(false);
  jest.advanceTimersByTime(1);
  await expect(late).rejects.toEqual(code('deadline_exceeded'));
  resolve('late');
  await turn();
  expect(undone).toEqual(['late']);
});

test('any of the signals ends it, also one that was aborted before', async () => {
  const during = waiting();
  const canceled = during.begin();
  during.abort.abort();
  await expect(canceled).rejects.toEqual(code('canceled'));
  during.resolve('late');
  await turn();
  expect([during.undone, during.wait.signal.aborted]).toEqual([['late'], true]);
  await expect(during.wait.for(new Promise(() => {}), 1000, () => {})).rejects.toEqual(code('canceled'));
  expect(new Wait([AbortSignal.abort()]).signal.aborted).toBe(true);
});

test('a result that comes in the turn in which it is given up is undone too', async () => {
  const { begin, resolve, abort, undone } = waiting();
  const canceled = begin();
  resolve('just too late');
  abort.abort();
  await expect(canceled).rejects.toEqual(code('canceled'));
  expect(undone).toEqual(['just too late']);
  const before = waiting();
  before.abort.abort();
  before.resolve('there already');
  await expect(before.begin()).rejects.toEqual(code('canceled'));
  expect(before.undone).toEqual(['there already']);
});

test('a pause ends by its time, or by a signal', async () => {
  const { wait, abort } = waiting();
  const slept = wait.sleep(200);
  let isOver = false;
  void slept.then(() => (isOver = true));
  jest.advanceTimersByTime(199);
  await turn();
  expect(isOver).toBe(false);
  jest.advanceTimersByTime(1);
  await slept;
  const canceled = wait.sleep(200);
  abort.abort();
  await expect(canceled).rejects.toEqual(code('canceled'));
});

test('signals that live on hear nothing of what is over', () => {
  const { wait, abort } = waiting();
  wait[Symbol.dispose]();
  abort.abort();
  expect(wait.signal.aborted).toBe(false);
});
