import { expect, test } from 'bun:test';
import { createShortage } from './shortage.ts';

/** A shortage with a clock that the test moves. */
function scene(unknown = 0) {
  const clock = { ms: 0 };
  const shortage = createShortage(() => clock.ms, unknown);
  const take = (times: number) => {
    for (let time = 0; time < times; time++) shortage.taken();
  };
  return { ...shortage, take, pass: (ms: number) => (clock.ms += ms) };
}

test('nobody wants any as long as nobody has come', () => {
  expect(createShortage().most()).toBe(0);
});

test('creates within five seconds count as together, later ones do not', () => {
  const it = scene();
  it.take(3);
  it.pass(4_999);
  it.take(4);
  expect(it.most()).toBe(7);
  it.pass(1);
  it.take(1);
  expect(it.most()).toBe(7);
  const apart = scene();
  for (let times = 0; times < 5; times++) {
    apart.take(1);
    apart.pass(5_000);
  }
  expect(apart.most()).toBe(1);
});

test('one that was replaced meanwhile does not count', () => {
  const it = scene();
  for (let times = 0; times < 50; times++) {
    it.take(1);
    it.pass(10);
    it.refilled();
  }
  expect(it.most()).toBe(1);
});

test('one that was started before the first create replaces nothing', () => {
  const it = scene();
  for (let times = 0; times < 3; times++) it.refilled();
  it.take(4);
  expect(it.most()).toBe(4);
});

test('the most of the last ten minutes counts, then the most of those after it', () => {
  const it = scene();
  it.take(20);
  it.pass(300_000);
  it.take(5);
  it.pass(100_000);
  it.take(9);
  it.pass(199_999);
  expect(it.most()).toBe(20);
  it.pass(1);
  expect(it.most()).toBe(9);
  it.pass(400_000);
  expect(it.most()).toBe(0);
});

test('as many again are expected for as long again', () => {
  const it = scene();
  it.take(20);
  it.pass(599_000);
  it.take(20);
  it.pass(599_000);
  expect(it.most()).toBe(20);
});

test('what is forgotten is not expected, and counts for nothing that comes after', () => {
  const it = scene();
  it.take(20);
  it.forget();
  expect(it.most()).toBe(0);
  it.take(1);
  expect(it.most()).toBe(1);
});

test('unknown clients are expected again ten minutes after everything was forgotten', () => {
  const it = scene(8);
  expect(it.most()).toBe(8);
  it.take(20);
  expect(it.most()).toBe(20);
  it.pass(600_000);
  expect(it.most()).toBe(8);
  it.forget();
  expect(it.most()).toBe(0);
  it.pass(599_999);
  it.take(3);
  expect(it.most()).toBe(3);
  it.pass(1);
  expect(it.most()).toBe(8);
});
