import { expect, test } from 'bun:test';
import { readCall } from './call.ts';

const callWith = (headers: Record<string, string>) => readCall(new Headers(headers));
const basic = (text: string) => Buffer.from(text).toString('base64');

test('a call without headers is the default user’s, has no deadline and is kept alive', () => {
  expect(callWith({})).toEqual({ username: '', timeoutMs: undefined, keepaliveMs: 90_000, wantsShortEntries: false });
});

test('the user is the name of Basic authorization, whatever the password', () => {
  const named = (authorization: string) => callWith({ authorization }).username;
  expect(named(`Basic ${basic('ann:')}`)).toBe('ann');
  expect(named(`basic  ${basic('ann:pass:word')}`)).toBe('ann');
  expect(named(`BASIC ${basic('jürgen')}`)).toBe('jürgen');
  for (const other of [`Bearer ${basic('ann:')}`, `Basic ${basic('ann:')} more`, 'Basic', 'Basic a*b', basic('ann:')])
    expect([other, named(other)]).toEqual([other, '']);
});

test('a deadline is a number of milliseconds; none or more than a timer counts is none', () => {
  const timeoutOf = (text: string) => callWith({ 'connect-timeout-ms': text }).timeoutMs;
  expect([timeoutOf('1'), timeoutOf('2147483647')]).toEqual([1, 2_147_483_647]);
  for (const none of ['', '0', '2147483648', '99999999999999999999'])
    expect([none, timeoutOf(none)]).toEqual([none, undefined]);
  for (const wrong of ['-1', '1.5', 'soon', '1s'])
    expect(() => timeoutOf(wrong)).toThrow(`Connect-Timeout-Ms must be a number of milliseconds, not '${wrong}'`);
});

test('a client says how often it is kept alive, in seconds', () => {
  const everyMs = (text: string) => callWith({ 'keepalive-ping-interval': text }).keepaliveMs;
  expect([everyMs('1'), everyMs('50')]).toEqual([1000, 50_000]);
  expect(['0', 'x', '-1', '1.5'].map(everyMs)).toEqual([90_000, 90_000, 90_000, 90_000]);
  expect(everyMs('2147484')).toBe(2_147_483_647);
});

test('one client gets short entries', () => {
  const wants = (agent: string) => callWith({ 'user-agent': agent }).wantsShortEntries;
  expect(['connect-python', 'connect-python/1', 'other'].map(wants)).toEqual([true, false, false]);
});
