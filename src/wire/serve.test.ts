import { expect, test } from 'bun:test';
import { fstatSync, openSync } from 'node:fs';
import { Type } from '@sinclair/typebox';
import { AtollError } from '../base/error.ts';
import { createLog } from '../base/telemetry/log.ts';
import { step } from '../base/telemetry/trace.ts';
import { type AnyTable, method } from '../protocol/wire/method.ts';
import { descriptor, nothing, optional } from '../protocol/wire/schema.ts';
import type { Listener } from './channel.ts';
import { checkedMethods } from './checked.ts';
import { frameBytesMax } from './frame.ts';
import { CallBudget, serve } from './serve.ts';

const table: AnyTable = {
  count: method([Type.Number(), optional(Type.Number())], Type.Number()),
  wait: method([], nothing()),
  file: method([], descriptor(), { passes: 'whole' }),
  named: method([], Type.Object({ name: Type.String(), descriptor: descriptor() }), { passes: 'member' }),
  bare: method([], Type.Object({ name: Type.String(), descriptor: optional(descriptor()) }), { passes: 'member' }),
  inner: { deep: method([], Type.String()) },
  files: {
    open: method([], Type.Object({ writeId: Type.String(), descriptor: descriptor() }), {
      passes: 'member',
      droppedBy: 'drop',
    }),
    keep: method([Type.String(), Type.Number()], nothing()),
    drop: method([Type.String()], nothing()),
  },
  edges: method([], nothing(), { callers: ['edge'] }),
};

const open = () => openSync('/dev/null', 'r');
const isOpen = (file: number | undefined) => {
  try {
    return fstatSync(file ?? -1).isCharacterDevice();
  } catch {
    return false; // closed
  }
};

/** Methods served on a channel whose other side is the test. */
function serving(implementation: object, budget?: CallBudget) {
  const answers: { message: Record<string, unknown>; file?: number }[] = [];
  const state = { closes: 0, logged: [] as string[] };
  let listener: Listener | undefined;
  let heard = () => {};
  const channel = {
    send(text: string, file?: number) {
      answers.push({ message: JSON.parse(text), ...(file !== undefined && { file }) });
      heard();
    },
    listen: (wanted: Listener) => void (listener = wanted),
    close: () => void state.closes++,
  };
  const log = createLog('warn', line => void state.logged.push(JSON.parse(line).level));
  serve(channel, 'api', { methods: checkedMethods(table), implementation, log }, budget);
  const says = (message: object | string, file?: number) =>
    listener?.message(typeof message === 'string' ? message : JSON.stringify(message), file);
  /** The next answer. */
  const next = async () => {
    while (answers.length === 0) await new Promise<void>(resolve => (heard = resolve));
    return answers.shift();
  };
  const asks = (call: string, ...args: unknown[]) => (says({ id: 1, call, args }), next());
  return { state, answers, says, next, asks, ends: () => listener?.closed() };
}

/** The code of an answer's error. */
const codeOf = (answer: Awaited<ReturnType<ReturnType<typeof serving>['next']>>) =>
  (answer?.message['error'] as { code?: string } | undefined)?.code;

test('the function of its name answers a call, and gets a signal after all arguments', async () => {
  const got: unknown[][] = [];
  const inner = { name: 'in', deep: async (...args: unknown[]) => (got.push(args), 'deep') };
  const { asks } = serving({ count: async (...args: unknown[]) => (got.push(args), 5), inner });
  expect(await asks('count', 1)).toEqual({ message: { id: 1, result: 5 } });
  expect(await asks('inner.deep')).toEqual({ message: { id: 1, result: 'deep' } });
  expect(got).toEqual([[1, undefined, expect.any(AbortSignal)], [expect.any(AbortSignal)]]);
});

test.each([
  ['a method that is none', 'constructor', [], 'unimplemented'],
  ['somebody else’s method', 'edges', [], 'forbidden'],
  ['wrong arguments', 'count', ['x'], 'invalid'],
  ['more arguments than it takes', 'count', [1, 2, 3], 'invalid'],
])('a call of %s is refused', async (_, call, args, code) => {
  const called: string[] = [];
  const { asks } = serving({ edges: () => called.push('edges'), count: () => called.push('count') });
  expect([codeOf(await asks(call, ...args)), called]).toEqual([code, []]);
});

test('an answer that its schema refuses is an error, is logged, and its file is closed', async () => {
  const file = open();
  const { asks, state } = serving({ count: async () => 'five', named: async () => ({ name: 5, descriptor: file }) });
  expect(codeOf(await asks('count', 1))).toBe('internal');
  expect(codeOf(await asks('named'))).toBe('internal');
  expect([state.logged, isOpen(file)]).toEqual([['error', 'error'], false]);
});

test('an open file is sent beside the answer', async () => {
  const { asks } = serving({
    file: async () => 7,
    named: async () => ({ name: 'a', descriptor: 8 }),
    bare: async () => ({ name: 'b' }),
  });
  expect(await asks('file')).toEqual({ message: { id: 1, result: null, file: true }, file: 7 });
  expect(await asks('named')).toEqual({ message: { id: 1, result: { name: 'a' }, file: true }, file: 8 });
  expect(await asks('bare')).toEqual({ message: { id: 1, result: { name: 'b' } } });
});

test('an answer that is too long is an error, and its file is closed', async () => {
  const file = open();
  const name = 'x'.repeat(frameBytesMax);
  const { asks } = serving({ named: async () => ({ name, descriptor: file }), bare: async () => ({ name }) });
  expect(codeOf(await asks('named'))).toBe('too_large');
  expect(codeOf(await asks('bare'))).toBe('too_large');
  expect(isOpen(file)).toBe(false);
});

/** A method that waits until its signal says that the caller has given up. */
function waiting() {
  const reasons: string[] = [];
  const wait = (signal: AbortSignal) =>
    new Promise((_, reject) =>
      signal.addEventListener('abort', () => {
        reasons.push(signal.reason.message);
        reject(signal.reason);
      }),
    );
  return { reasons, wait, count: async () => 5 };
}

test('a call ends when its caller gives up, and no other with it', async () => {
  const implementation = waiting();
  const { says, next, answers, state } = serving(implementation);
  says({ id: 1, call: 'wait', args: [] });
  says({ id: 2, call: 'wait', args: [] });
  says({ id: 9, cancel: true });
  says({ id: 2, cancel: true });
  expect(await next()).toMatchObject({ message: { id: 2, error: { code: 'canceled' } } });
  expect([implementation.reasons.length, answers, state.closes]).toEqual([1, [], 0]);
});

test('all calls end when their caller is gone', async () => {
  const implementation = waiting();
  const { says, ends } = serving(implementation);
  for (const id of [1, 2]) says({ id, call: 'wait', args: [] });
  await Promise.resolve();
  ends();
  expect(implementation.reasons).toEqual(['The caller is gone', 'The caller is gone']);
});

/** Files that can be begun, kept and dropped. `open` waits for `opened`. */
function filesOf(opened: Promise<void> = Promise.resolve()) {
  const [did, descriptors]: [string[], number[]] = [[], []];
  const drop = async (id: string) => {
    did.push(`drop ${id}`);
    if (id === 'w2') throw new AtollError('not_found', 'it has run out');
    if (id === 'w3') throw new Error('it can not be dropped');
  };
  const begin = async () => {
    await opened;
    return { writeId: `w${descriptors.push(open())}`, descriptor: descriptors.at(-1) };
  };
  const keep = async (id: string) => void did.push(`keep ${id}`);
  return { did, descriptors, files: { open: begin, keep, drop } };
}

test('what a caller has begun and not ended is dropped with its connection, and nothing of others', async () => {
  const implementation = filesOf();
  const [one, other] = [serving(implementation), serving(implementation)];
  for (const { asks } of [one, one, one, one, one, other]) await asks('files.open');
  await one.asks('files.keep', 'w4', 1);
  await one.asks('files.drop', 'w5');
  expect(implementation.did).toEqual(['keep w4', 'drop w5']);
  // A refused call ends nothing.
  expect(codeOf(await one.asks('files.keep', 'w1', 'x'))).toBe('invalid');
  one.ends();
  expect(implementation.did.slice(2)).toEqual(['drop w1', 'drop w2', 'drop w3']);
  // An expired file is no failure.
  for (let turns = 0; turns < 10; turns++) await Promise.resolve();
  expect(one.state.logged).toEqual(['warn']);
  await other.asks('files.keep', 'w6', 1);
  other.ends();
  expect(implementation.did.slice(5)).toEqual(['keep w6']);
});

test.each(['cancels', 'is gone'])('what is begun when its caller %s meanwhile is dropped at once', async what => {
  const opened = Promise.withResolvers<void>();
  const implementation = filesOf(opened.promise);
  const { says, next, ends } = serving(implementation);
  says({ id: 1, call: 'files.open', args: [] });
  await Promise.resolve();
  if (what === 'cancels') says({ id: 1, cancel: true });
  else ends();
  opened.resolve();
  await next();
  expect(implementation.did).toEqual(['drop w1']);
});

test('an invalid call, or a number already under way, closes the channel and is logged', async () => {
  const { says, state, asks } = serving(waiting());
  expect(await asks('count', 1)).toMatchObject({ message: { result: 5 } });
  // The same ID may be used again when its call is over.
  expect(await asks('count', 1)).toMatchObject({ message: { result: 5 } });
  expect(state.closes).toBe(0);
  says({ id: 3, call: 'wait', args: [] });
  says({ id: 3, call: 'wait', args: [] });
  expect([state.closes, state.logged]).toEqual([1, []]);
  says('hello');
  expect([state.closes, state.logged]).toEqual([2, ['warn']]);
});

test('a file that comes with a call is closed', async () => {
  const { says, next } = serving(waiting());
  const file = open();
  says({ id: 1, call: 'count', args: [1] }, file);
  await next();
  expect(isOpen(file)).toBe(false);
});

test('the number of calls under way is limited, and a finished one makes room', async () => {
  const budget = new CallBudget();
  const { says, asks, next } = serving(waiting(), budget);
  for (let taken = 0; taken < 9_999; taken++) budget.take();
  says({ id: 2, call: 'wait', args: [] });
  expect(codeOf(await asks('count', 1))).toBe('unavailable');
  // A refused call gives nothing back.
  expect(codeOf(await asks('count', 1))).toBe('unavailable');
  says({ id: 2, cancel: true });
  await next();
  expect(await asks('count', 1)).toMatchObject({ message: { result: 5 } });
  budget.take();
  expect(() => budget.take()).toThrow('10000 calls are under way');
});

test('the steps of a traced call come with its answer, even with an error', async () => {
  const count = (value: number) =>
    step('inside', async () => {
      if (value === 0) throw new Error('none');
      return value;
    });
  const { says, next } = serving({ count });
  const trace = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
  says({ id: 1, call: 'count', args: [1], trace });
  says({ id: 2, call: 'count', args: [0], trace });
  says({ id: 3, call: 'count', args: [1] });
  const messages = [await next(), await next(), await next()].map(answer => answer?.message);
  messages.sort((a, b) => Number(a?.['id']) - Number(b?.['id']));
  const steps = [expect.objectContaining({ name: 'inside' })];
  expect(messages[0]).toEqual({ id: 1, result: 1, steps });
  expect(messages[1]).toEqual({ id: 2, error: expect.anything(), steps });
  expect(messages[2]).toEqual({ id: 3, result: 1 });
});
