import { expect, test } from 'bun:test';
import { constants } from 'node:os';
import { AtollError, causesOf } from '../base/error.ts';
import { nodeFull, shortageOf, tellsShortage, toKnown } from './no-room.ts';

test.each(['EAGAIN', 'ENOMEM', 'ENFILE', 'EMFILE'] as const)('%s says that the machine lacks something', code => {
  const thrown = Object.assign(new Error(`${code}: open '/a/path'`), { code });
  const known = toKnown(thrown);
  expect(known).toMatchObject({ code: 'unavailable', detail: nodeFull, cause: thrown });
  expect(known?.message).toMatch(/^it can’t be done: this machine has no more \w+ for it now$/);
  expect(causesOf(known)).toContain('/a/path');
  expect(shortageOf(constants.errno[code], 'open')?.message.slice(4)).toBe(
    known?.message.slice('it can’t be done'.length),
  );
});

test('a known error stays as it is, and any other is not known', () => {
  const known = new AtollError('invalid', 'no');
  expect(toKnown(known)).toBe(known);
  expect(toKnown(Object.assign(new Error('gone'), { code: 'ENOENT' }))).toBeUndefined();
  expect(toKnown('EMFILE')).toBeUndefined();
  expect(shortageOf(0, 'fine')).toBeUndefined();
});

test('if the undoing fails as well, the first failure is reported, and both are in the log', () => {
  const first = new AtollError('not_found', 'it is gone', { detail: 'gone', fields: { a: 1 }, retryAfterSeconds: 2 });
  const known = toKnown(new SuppressedError(new Error('EBUSY: unmount'), first));
  expect(known).toMatchObject({
    ...{ code: 'not_found', message: 'it is gone', detail: 'gone', fields: { a: 1 }, retryAfterSeconds: 2 },
    ...{ status: 500, mayHaveChanged: true },
  });
  expect(causesOf(known)).toBe('it is gone (it is gone; and then: EBUSY: unmount)');
  expect(toKnown(new SuppressedError(first, new SuppressedError(first, new Error('a defect'))))).toBeUndefined();
});

test('a program’s last words show it too', () => {
  expect(tellsShortage('Can’t fork ns dumper: Resource temporarily unavailable; fork() failed')).toBe(true);
  expect(tellsShortage('Can’t dump a socket of an unknown family')).toBe(false);
});
