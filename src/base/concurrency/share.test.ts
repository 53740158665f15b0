import { expect, test } from 'bun:test';
import { Share } from './share.ts';

test('what a holder takes counts for all that it is part of, and the nearest full share explains a refusal', () => {
  const everybody = new Share('everybody', 4, null);
  const team = new Share('team', 3, everybody);
  const [one, other] = [new Share('sandbox', 2, team), new Share('sandbox', 2, team)];
  one.take();
  one.take();
  expect(one.full?.holder).toBe('sandbox');
  expect(other.full).toBeNull();
  other.take();
  expect(other.full?.holder).toBe('team');
  const stranger = new Share('sandbox', 2, everybody);
  expect(stranger.full).toBeNull();
  stranger.take();
  expect(stranger.full?.holder).toBe('everybody');
  one.give();
  expect([one.full, stranger.full, everybody.taken]).toEqual([null, null, 3]);
});
