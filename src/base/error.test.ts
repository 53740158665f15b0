import { expect, test } from 'bun:test';
import { AtollError, assert, causesOf, isGone, messageOf, systemCodeOf } from './error.ts';

const failed = (code: string) => Object.assign(new Error('it failed'), { code });

test('an error has the status of its code, unless the change may have happened all the same', () => {
  expect(new AtollError('unavailable', 'later').status).toBe(503);
  expect(new AtollError('unavailable', 'later', { mayHaveChanged: true }).status).toBe(500);
});

test('an error with few facts has no more', () => {
  const error = new AtollError('invalid', 'no');
  expect(error).toMatchObject({ code: 'invalid', message: 'no', fields: {}, mayHaveChanged: false });
  expect([error.detail, error.retryAfterSeconds, 'cause' in error]).toEqual([undefined, undefined, false]);
  expect(new AtollError('invalid', 'no', { cause: 'x' }).cause).toBe('x');
});

test('anything thrown has a text, with all of its causes', () => {
  expect([messageOf(new Error('a')), messageOf('b'), messageOf(undefined)]).toEqual(['a', 'b', 'undefined']);
  expect(causesOf(new Error('a', { cause: new Error('b', { cause: 'c' }) }))).toBe('a (b (c))');
  expect([causesOf(new Error('a')), causesOf('b')]).toEqual(['a', 'b']);
  const twice = new SuppressedError(new Error('c'), new SuppressedError(new Error('b'), new Error('a')));
  expect(messageOf(twice)).toBe('a; and then: b; and then: c');
});

test('a failed system call is known by its name', () => {
  expect([systemCodeOf(failed('EACCES')), systemCodeOf(new Error('x')), systemCodeOf({ code: 'EACCES' })]).toEqual([
    ...['EACCES', '', ''],
  ]);
  expect(['ENOENT', 'ESRCH', 'ENOTDIR'].map(code => isGone(failed(code)))).toEqual([true, true, true]);
  expect([isGone(failed('EACCES')), isGone(new Error('x')), isGone(undefined)]).toEqual([false, false, false]);
});

test('a broken invariant says which one', () => {
  expect(() => assert(1, 'one')).not.toThrow();
  expect(() => assert(0, 'one')).toThrow('invariant broken: one');
});
