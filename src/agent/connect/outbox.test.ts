import { afterEach, expect, jest, mock, spyOn, test } from 'bun:test';
import { deadline } from './deadline.ts';
import { encodeEnd, encodeMessage } from './envelope.ts';
import { keepAlive } from './keepalive.ts';
import { Outbox } from './outbox.ts';

/** An outbox, what it reported, and what its client takes. */
function open() {
  const outbox = new Outbox();
  const told: string[] = [];
  outbox.onProgress = () => void told.push(`progress ${outbox.bytes}`);
  outbox.onClose = () => void told.push('closed');
  const reader = outbox.stream().getReader();
  const take = async () => {
    const { done, value } = await reader.read();
    return done ? undefined : Buffer.from(value).toString('latin1');
  };
  return { outbox, told, reader, take };
}
const text = (...envelopes: Uint8Array[]) => Buffer.concat(envelopes).toString('latin1');

test('waiting messages are sent at once, in order, and count until then', async () => {
  const { outbox, told, take } = open();
  outbox.addMessage('one');
  outbox.addMessage('two');
  // Nothing is taken before the client takes it.
  await new Promise(resolve => setImmediate(resolve));
  expect([outbox.bytes, told]).toEqual([20, []]);
  expect(await take()).toBe(text(encodeMessage('one'), encodeMessage('two')));
  expect([outbox.bytes, told]).toEqual([0, ['progress 0']]);
  const next = take();
  outbox.addMessage('three');
  expect(await next).toBe(text(encodeMessage('three')));
});

test('an end comes behind what waits, once, and nothing behind it', async () => {
  const { outbox, told, take } = open();
  outbox.addMessage('one');
  outbox.end({ code: 'canceled', message: 'm' });
  outbox.end();
  outbox.addMessage('two');
  expect(outbox.isOpen).toBeFalse();
  expect(await take()).toBe(text(encodeMessage('one'), encodeEnd({ code: 'canceled', message: 'm' })));
  expect(await take()).toBeUndefined();
  expect(told).toEqual(['progress 0', 'closed']);
  outbox.abandon();
  expect(told).toEqual(['progress 0', 'closed']);
});

test('an end wakes a client that waits', async () => {
  const { outbox, take } = open();
  const next = take();
  await Promise.resolve();
  outbox.end();
  expect([await next, await take()]).toEqual([text(encodeEnd()), undefined]);
});

test('a client that goes takes with it what waits, and is told of once', async () => {
  const { outbox, told, reader } = open();
  outbox.addMessage('one');
  await reader.cancel();
  expect([outbox.bytes, outbox.isOpen, told]).toEqual([0, false, ['progress 0', 'closed']]);
  outbox.addMessage('two');
  outbox.end();
  outbox.abandon();
  expect([outbox.bytes, told]).toEqual([0, ['progress 0', 'closed']]);
});

/** Lets time pass on the test's own clock. */
function clock() {
  let nowMs = 0;
  spyOn(performance, 'now').mockImplementation(() => nowMs);
  jest.useFakeTimers();
  return (ms: number) => {
    for (let left = ms; left > 0; left--) {
      nowMs++;
      jest.advanceTimersByTime(1);
    }
  };
}
afterEach(() => {
  jest.useRealTimers();
  mock.restore();
});

test('a deadline ends the stream behind what its end makes of it, and not one that is over', async () => {
  const pass = clock();
  const { outbox, told, take } = open();
  deadline(outbox, 50, 'it took too long', () => outbox.addMessage('last'));
  pass(49);
  expect(outbox.isOpen).toBeTrue();
  pass(1);
  expect(await take()).toBe(
    text(encodeMessage('last'), encodeEnd({ code: 'deadline_exceeded', message: 'it took too long' })),
  );
  expect(told.at(-1)).toBe('closed');

  const over = open();
  let ended = 0;
  deadline(over.outbox, 50, 'it took too long', () => ended++);
  over.outbox.abandon();
  expect(over.told.at(-1)).toBe('closed');
  deadline(over.outbox, undefined, 'never', () => ended++);
  pass(1000);
  expect(ended).toBe(0);
});

test('a stream says that it is alive after each silence, and only then', async () => {
  const pass = clock();
  const { outbox, take } = open();
  keepAlive(outbox, 100, 'alive');
  const alive = text(encodeMessage('alive'));
  pass(99);
  expect(outbox.bytes).toBe(0);
  pass(1);
  expect(await take()).toBe(alive);
  pass(60);
  outbox.addMessage('said');
  expect(await take()).toBe(text(encodeMessage('said')));
  pass(99);
  expect(outbox.bytes).toBe(0);
  pass(1);
  expect(await take()).toBe(alive);
  // A client that takes nothing is reported once.
  pass(1000);
  expect(await take()).toBe(alive);
});

test('a stream that is over is not kept alive', () => {
  const pass = clock();
  const { outbox, told } = open();
  keepAlive(outbox, 100);
  outbox.abandon();
  expect(told).toEqual(['progress 0', 'closed']);
  pass(1000);
  expect([outbox.bytes, jest.getTimerCount()]).toEqual([0, 0]);
});
