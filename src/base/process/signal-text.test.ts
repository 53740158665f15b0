import { expect, test } from 'bun:test';
import { signalOf, signalText } from './signal-text.ts';

test('a signal has words, and is found again by them', () => {
  expect([1, 9, 15, 31, 34].map(signalText)).toEqual([
    ...['signal: hangup', 'signal: killed', 'signal: terminated', 'signal: bad system call', 'signal: signal 34'],
  ]);
  for (let number = 1; number <= 64; number++) expect(signalOf(signalText(number))).toBe(number);
  expect(signalOf('signal: killed (out of memory: the memory limit of the sandbox was reached)')).toBe(9);
  for (const text of ['exit status 1', 'signal: ', 'signal: of nothing', '']) expect(signalOf(text)).toBeUndefined();
});
