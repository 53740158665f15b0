import { expect, test } from 'bun:test';
import { AtollError } from '../base/error.ts';
import { fromWire, toWire } from './error.ts';

/** The error as the other side of a wire receives it. */
const crossed = (error: unknown) => fromWire(JSON.parse(JSON.stringify(toWire(error))));

test('an error arrives complete', () => {
  const arrived = crossed(
    new AtollError('conflict', 'it is there', {
      detail: 'name_taken',
      fields: { name: 'x', tries: 3 },
      retryAfterSeconds: 0,
      cause: new Error('the store', { cause: new Error('a row') }),
    }),
  );
  expect(arrived).toBeInstanceOf(AtollError);
  expect(arrived).toMatchObject({
    code: 'conflict',
    message: 'it is there',
    detail: 'name_taken',
    fields: { name: 'x', tries: 3 },
    retryAfterSeconds: 0,
  });
  expect(arrived.cause).toEqual(new Error('the store (a row)'));
});

test('an error with few facts crosses with few', () => {
  expect(toWire(new AtollError('invalid', 'no'))).toEqual({ code: 'invalid', message: 'no' });
  expect(crossed(new AtollError('invalid', 'no'))).toEqual(new AtollError('invalid', 'no'));
  expect(crossed(new AtollError('invalid', 'no')).cause).toBeUndefined();
});

test('a shortage is not a defect', () => {
  const thrown = Object.assign(new Error('EMFILE: too many open files, pidfd_open'), { code: 'EMFILE' });
  expect(crossed(thrown)).toMatchObject({ code: 'unavailable', detail: 'sandbox_capacity_unavailable' });
});

test('anything else that is thrown is a defect of ours', () => {
  expect(toWire(new TypeError('x is null', { cause: 'y' }))).toEqual({
    ...{ code: 'internal', message: 'x is null', cause: 'x is null (y)' },
  });
  expect(toWire('text')).toEqual({ code: 'internal', message: 'text' });
});

test('another process’s words about a defect are for the log', () => {
  expect(crossed(new Error("ENOENT: no such file or directory, open '/data/x'")).forLog).toBe(true);
  expect(crossed(new AtollError('internal', 'the disk /data/x is still in use')).forLog).toBe(true);
  expect(crossed(new AtollError('unavailable', 'it has no room')).forLog).toBe(false);
});

test('facts without a JSON form cross as text', () => {
  const fields = { a: null, b: true, c: 'c', d: 1.5, e: Number.NaN, f: 7n, g: undefined, h: ['x', 'y'] };
  expect(crossed(new AtollError('internal', 'no', { fields })).fields).toEqual({
    ...{ a: null, b: true, c: 'c', d: 1.5, e: 'NaN', f: '7', g: 'undefined', h: 'x,y' },
  });
});

test('a code that this version does not know counts as a defect', () => {
  for (const code of ['of_tomorrow', 'constructor', 'toString', '__proto__'])
    expect(fromWire({ code, message: 'no' }).status).toBe(500);
});
