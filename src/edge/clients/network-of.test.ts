import { expect, test } from 'bun:test';
import { isLoopback, networkOf } from './network-of.ts';

test('an address stands for its /64, however it is written', () => {
  expect(networkOf('192.0.2.7')).toBe('192.0.2.7');
  expect(networkOf('::ffff:192.0.2.7')).toBe('192.0.2.7');
  expect(networkOf('2001:db8:1:2:3:4:5:6')).toBe('2001:db8:1:2::/64');
  expect(networkOf('2001:db8:1:2::9')).toBe('2001:db8:1:2::/64');
  expect(networkOf('2001:db8::9')).toBe('2001:db8:0:0::/64');
  expect(networkOf('fe80::1')).toBe('fe80:0:0:0::/64');
  expect(networkOf('::1')).toBe('0:0:0:0::/64');
});

test('only the loopback is this machine', () => {
  expect(['127.0.0.1', '127.0.0.9', '::1', '::ffff:127.0.0.1'].map(isLoopback)).toEqual([true, true, true, true]);
  expect(['127.18.0.1', '::2', '2001:db8::1', '::ffff:10.0.0.1', '1270::1'].map(isLoopback)).toEqual([
    false,
    false,
    false,
    false,
    false,
  ]);
});
