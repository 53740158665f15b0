import { afterEach, beforeEach, expect, jest, test } from 'bun:test';
import { closeSync, fstatSync, openSync } from 'node:fs';
import { Type } from '@sinclair/typebox';
import { AtollError } from '../base/error.ts';
import { traced } from '../base/telemetry/trace.ts';
import { type AnyTable, method } from '../protocol/wire/method.ts';
import { descriptor, nothing, optional } from '../protocol/wire/schema.ts';
import { callsOn, proxyOf } from './call.ts';
import type { Listener } from './channel.ts';
import { checkedMethods } from './checked.ts';
import { frameBytesMax } from './frame.ts';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

type Lab = {
  count(first: number, second?: number, signal?: AbortSignal): Promise<number>;
  list(): Promise<string[]>;
  say(text: string): Promise<void>;
  file(): Promise<number>;
  named(): Promise<{ name: string; descriptor: number }>;
  inner: { deep(signal?: AbortSignal): Promise<void> };
};

const table: AnyTable = {
  count: method([Type.Number(), optional(Type.Number())], Type.Number(), { deadlineMs: 1_000 }),
  list: method([], Type.Array(Type.String())),
  say: method([Type.String()], nothing()),
  file: method([], descriptor(), { passes: 'whole' }),
  named: method([], Type.Object({ name: Type.String(), descriptor: descriptor() }), { passes: 'member' }),
  inner: { deep: method([], nothing()) },
};

/** Calls over a channel whose other side is the test. */
function calling() {
  const sent: Record<string, unknown>[] = [];
  const state = { closes: 0, ended: 0, isFull: false };
  let listener: Listener | undefined;
  const channel = {
    send(text: string) {
      sent.push(JSON.parse(text));
      if (state.isFull) listener?.closed();
    },
    listen: (heard: Listener) => void (listener = heard),
    close: () => void state.closes++,
  };
  const calls = callsOn(channel, 'lab', () => state.ended++);
  const remote = proxyOf<Lab>(table, checkedMethods(table), calls);
  const answers = (message: object, file?: number) => listener?.message(JSON.stringify(message), file);
  /** Messages sent since the last call. */
  const took = () => sent.splice(0);
  return {
    remote,
    state,
    answers,
    took,
    says: (text: string) => listener?.message(text),
    ends: () => listener?.closed(),
  };
}

const open = () => openSync('/dev/null', 'r');
const isOpen = (file: number) => {
  try {
    return fstatSync(file).isCharacterDevice();
  } catch {
    return false; // closed
  }
};

test('a call is a message with a number of its own, and its answer comes back', async () => {
  const { remote, answers, took } = calling();
  const [first, second] = [remote.count(1, 2), remote.inner.deep()];
  expect(took()).toEqual([
    { id: 1, call: 'count', args: [1, 2] },
    { id: 2, call: 'inner.deep', args: [] },
  ]);
  answers({ id: 2 });
  answers({ id: 1, result: 3 });
  expect([await first, await second]).toEqual([3, undefined]);
});

test('omitted arguments at the end are not sent', async () => {
  const { remote, took } = calling();
  void remote.count(1, undefined, undefined);
  void remote.count(1, undefined, new AbortController().signal);
  void remote.inner.deep(undefined);
  expect(took().map(({ args }) => args)).toEqual([[1], [1], []]);
});

test('an answered call is no longer ended by time or signal', async () => {
  const { remote, answers, took } = calling();
  const stop = new AbortController();
  const answered = remote.count(1, undefined, stop.signal);
  const failed = remote.count(2, undefined, stop.signal);
  took();
  answers({ id: 1, result: 3 });
  answers({ id: 2, error: { code: 'no_space', message: 'all is full' } });
  expect(await answered).toBe(3);
  await expect(failed).rejects.toMatchObject({ code: 'no_space', message: 'all is full' });
  jest.advanceTimersByTime(60_000);
  stop.abort();
  expect(took()).toEqual([]);
});

test('a caller that waits too long, or gives up, tells the other side, once', async () => {
  const { remote, took, answers } = calling();
  const [stop, changed] = [new AbortController(), new AbortController()];
  const calls = [remote.count(1, undefined, stop.signal), remote.count(2, undefined, changed.signal), remote.count(3)];
  const outcomes = Promise.all(calls.map(call => call.catch((error: AtollError) => `${error.code} ${error.message}`)));
  took();
  stop.abort();
  changed.abort(new AtollError('conflict', 'it has changed'));
  jest.advanceTimersByTime(999);
  expect(took()).toEqual([
    { id: 1, cancel: true },
    { id: 2, cancel: true },
  ]);
  jest.advanceTimersByTime(1);
  expect(took()).toEqual([{ id: 3, cancel: true }]);
  expect(await outcomes).toEqual([
    'canceled Nobody waits for the answer any more',
    'conflict it has changed',
    "deadline_exceeded The platform's lab did not answer count within 1 s",
  ]);
  jest.advanceTimersByTime(60_000);
  answers({ id: 1, result: 1 });
  expect(took()).toEqual([]);
});

test('a call that can’t be made is not sent', async () => {
  const { remote, took, ends } = calling();
  await expect(remote.count('x' as unknown as number)).rejects.toMatchObject({ code: 'internal' });
  await expect(remote.say('x'.repeat(frameBytesMax))).rejects.toMatchObject({ code: 'too_large' });
  await expect(remote.count(1, undefined, AbortSignal.abort())).rejects.toMatchObject({ code: 'canceled' });
  ends();
  await expect(remote.count(1)).rejects.toMatchObject({ code: 'unavailable', detail: 'part_lost' });
  expect(took()).toEqual([]);
  // None of them still counts as under way.
  jest.advanceTimersByTime(120_000);
  expect(took()).toEqual([]);
});

test('an end on either side leaves nobody waiting', async () => {
  const { remote, state, ends, took } = calling();
  const waiting = remote.count(1);
  took();
  ends();
  await expect(waiting).rejects.toMatchObject({ code: 'unavailable', detail: 'part_lost' });
  jest.advanceTimersByTime(60_000);
  expect([state.ended, took()]).toEqual([1, []]);
});

test('a call that closes the channel, which takes no more, fails', async () => {
  const { remote, state } = calling();
  state.isFull = true;
  await expect(remote.count(1)).rejects.toMatchObject({ code: 'unavailable', detail: 'part_lost' });
});

test('an invalid message closes the channel, an answer that nobody waits for does not', () => {
  const { remote, state, answers, says } = calling();
  for (let count = 0; count < 2; count++) void remote.count(1);
  answers({ id: 9, result: 1 });
  expect(state.closes).toBe(0);
  says('hello');
  expect(state.closes).toBe(1);
});

test('an open file belongs to the answer that it comes with', async () => {
  const { remote, answers } = calling();
  const [whole, member] = [open(), open()];
  const calls = [remote.file(), remote.named()] as const;
  answers({ id: 1, result: null, file: true }, whole);
  answers({ id: 2, result: { name: 'a' }, file: true }, member);
  expect([await calls[0], await calls[1]]).toEqual([whole, { name: 'a', descriptor: member }]);
  expect([isOpen(whole), isOpen(member)]).toEqual([true, true]);
  for (const file of [whole, member]) closeSync(file);
});

test('a file that nobody gets is closed', async () => {
  const { remote, answers } = calling();
  const files = [open(), open(), open(), open()] as const;
  const calls = [remote.file(), remote.named(), remote.list()] as const;
  const settled = Promise.all([
    calls[0],
    ...[calls[1], calls[2]].map(call => call.catch((error: AtollError) => error.code)),
  ]);
  // As many more as there were answers without a call.
  for (let count = 0; count < 2; count++) void remote.count(1);
  const kept = open();
  answers({ id: 1, result: null, file: true }, kept);
  // A second answer to the same call, an answer without a call, an invalid answer, and an error.
  answers({ id: 1, result: null, file: true }, files[0]);
  answers({ id: 7, result: null, file: true }, files[1]);
  answers({ id: 2, result: { name: 5 }, file: true }, files[2]);
  answers({ id: 3, error: { code: 'conflict', message: 'no' }, file: true }, files[3]);
  expect(await settled).toEqual([kept, 'internal', 'conflict']);
  expect(files.map(isOpen)).toEqual([false, false, false, false]);
  closeSync(kept);
});

test('an answer that lacks its file is invalid', async () => {
  const { remote, answers } = calling();
  const calls = [remote.file(), remote.named(), remote.count(1)];
  const codes = Promise.all(calls.map(call => (call as Promise<unknown>).catch((error: AtollError) => error.code)));
  answers({ id: 1, result: null });
  answers({ id: 2, result: { name: 'a' } });
  answers({ id: 3, result: [] });
  expect(await codes).toEqual(['internal', 'internal', 'internal']);
});

test('lists stay lists', async () => {
  const { remote, answers } = calling();
  const listed = remote.list();
  answers({ id: 1, result: ['a', 'b'] });
  expect(await listed).toEqual(['a', 'b']);
});

test('the steps of an answer belong to the trace of the caller', async () => {
  const { remote, answers, took } = calling();
  const steps = [{ spanId: 'a'.repeat(16), parentSpanId: 'b'.repeat(16), name: 'far', startMs: 1, endMs: 3 }];
  const { serverTiming } = await traced(async () => {
    const answered = remote.count(1);
    const [{ trace } = { trace: undefined }] = took();
    expect(trace).toMatch(/^00-/);
    answers({ id: 1, result: 1, steps });
    await answered;
    const silent = remote.count(1);
    answers({ id: 2, result: 1 });
    await silent;
  });
  expect(serverTiming).toStartWith('far;dur=2');
  took();
  void remote.count(1);
  expect(took()).toEqual([{ id: 3, call: 'count', args: [1] }]);
});

test('an unchecked method is not called', () => {
  const { count } = table;
  expect(() => proxyOf({ count } as AnyTable, new Map(), { call: async () => {} })).toThrow('no method count');
});

test('a file that no method answers is closed, and the answer is none', async () => {
  const { remote, answers } = calling();
  const file = open();
  const listed = remote.list();
  answers({ id: 1, result: ['a'], file: true }, file);
  await expect(listed).rejects.toThrow('list: the answer must be without a file');
  expect(isOpen(file)).toBe(false);
});

test('a sender of more answers than were asked for is not heard', async () => {
  const { remote, answers, state, says } = calling();
  const listed = remote.list();
  answers({ id: 1, result: ['a'] });
  expect([await listed, state.closes]).toEqual([['a'], 0]);
  const file = open();
  answers({ id: 1, result: ['b'] }, file);
  expect([state.closes, isOpen(file)]).toEqual([1, false]);
  says('"more"');
  expect(state.closes).toBe(2);
});
