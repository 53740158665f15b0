import { expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { ifThere } from './if-there.ts';

test('something that is not there differs from something that can’t be looked at', () => {
  expect(ifThere(() => readFileSync('/proc/self/comm', 'utf8').length > 0, false)).toBe(true);
  for (const path of ['/proc/self/no-such', '/proc/self/comm/no-such', '/proc/4194305/stat'])
    expect(ifThere(() => readFileSync(path), 'absent')).toBe('absent');
  expect(() => ifThere(() => readFileSync('/proc/self'), 'absent')).toThrow('EISDIR');
  expect(ifThere(() => readdirSync('/proc/self/comm'), 'absent')).toBe('absent');
  expect(() =>
    ifThere(() => {
      throw Object.assign(new Error('too many open files'), { code: 'EMFILE' });
    }, 'absent'),
  ).toThrow('too many');
});
