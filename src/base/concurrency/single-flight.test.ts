import { expect, test } from 'bun:test';
import { SingleFlight } from './single-flight.ts';

test('callers during a run share its outcome; the next one begins anew', async () => {
  const flights = new SingleFlight<string, number>();
  const first = Promise.withResolvers<number>();
  let runs = 0;
  const work = () => (++runs, first.promise);
  const shared = [flights.run('a', work), flights.run('a', work)];
  expect(await flights.run('b', async () => 7)).toBe(7);
  expect(runs).toBe(1);
  expect(flights.underWay('a')).toBeDefined();
  first.resolve(1);
  expect(await Promise.all(shared)).toEqual([1, 1]);
  expect(flights.underWay('a')).toBeUndefined();
  expect(await flights.run('a', async () => 2)).toBe(2);
});

test('all callers share a failure, even an immediate one, and it is not remembered', async () => {
  const flights = new SingleFlight<string, number>();
  const fail = () => {
    throw new Error('no');
  };
  const failures = [flights.run('a', fail), flights.run('a', fail)];
  await flights.settled();
  for (const failure of failures) expect(failure).rejects.toThrow('no');
  expect(await flights.run('a', async () => 1)).toBe(1);
});
