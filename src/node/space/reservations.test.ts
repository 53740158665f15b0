import { expect, test } from 'bun:test';
import { Reservations } from './reservations.ts';

test('what is promised counts until it is written or given back, and no longer', () => {
  const reservations = new Reservations();
  const first = reservations.add(100);
  {
    using second = reservations.add(30);
    expect(reservations.bytes).toBe(130);
    second.wrote(10);
    expect(reservations.bytes).toBe(120);
    // More arrived than was announced.
    second.wrote(40);
    expect(reservations.bytes).toBe(100);
  }
  expect(reservations.bytes).toBe(100);
  for (let times = 0; times < 2; times++) first[Symbol.dispose]();
  expect(reservations.bytes).toBe(0);
});
