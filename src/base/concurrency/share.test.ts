import { expect, test } from 'bun:test';
import { Share } from './share.ts';

test('what one takes counts for all that he is a part of, and the nearest full share says why there is no room', () => {
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
