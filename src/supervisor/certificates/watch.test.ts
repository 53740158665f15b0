import { afterEach, beforeEach, expect, jest, test } from 'bun:test';
import { createLog } from '../../base/telemetry/log.ts';
import { watchCertificate } from './watch.ts';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

test('each new certificate is reported once, until nobody watches', () => {
  const [told, lines]: [string[], string[]] = [[], []];
  const pair = (certificate: string) => ({ certificate, key: '' });
  let [next, broken] = [pair('first'), false];
  const source = {
    current: next,
    refresh() {
      if (broken) throw new Error('no such folder');
      source.current = next;
    },
  };
  const look = () => jest.advanceTimersByTime(5_000);
  const watch = watchCertificate(
    source,
    ({ certificate }) => void told.push(certificate),
    createLog('warn', line => void lines.push(line)),
  );
  look();
  expect(told).toEqual([]);
  next = pair('second');
  look();
  look();
  expect(told).toEqual(['second']);
  [next, broken] = [pair('third'), true];
  look();
  expect([told, lines.length]).toEqual([['second'], 1]);
  broken = false;
  look();
  expect(told).toEqual(['second', 'third']);
  watch[Symbol.dispose]();
  next = pair('fourth');
  look();
  expect(told).toEqual(['second', 'third']);
});
