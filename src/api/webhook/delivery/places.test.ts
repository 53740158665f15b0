import { expect, test } from 'bun:test';
import { Places } from './places.ts';

const hook = (team: number, n: number, failing = false) => ({
  teamId: `team ${team}`,
  webhookId: `hook ${team}/${n}`,
  failing,
});
const hooksOf = (team: number, failing = false) => Array.from({ length: 20 }, (_, n) => hook(team, n, failing));

/** Lets these begin as many deliveries as they may; answers how many of each team that were. */
function fill(places: Places, waiting: ReturnType<typeof hook>[]): Record<string, number> {
  const begun: Record<string, number> = {};
  for (let next = places.next(waiting); next !== undefined; next = places.next(waiting)) {
    places.take(next);
    begun[next.teamId] = (begun[next.teamId] ?? 0) + 1;
  }
  return begun;
}

test('a team alone has all that its webhooks may have', () => {
  expect(fill(new Places(), hooksOf(1))).toEqual({ 'team 1': 80 });
  expect(fill(new Places(), hooksOf(1, true))).toEqual({ 'team 1': 20 });
});

test('teams that come together have equal parts, and leave one more part of the same size', () => {
  const begun = fill(
    new Places(),
    [1, 2, 3, 4].flatMap(team => hooksOf(team)),
  );
  expect(Object.values(begun).toSorted()).toEqual([38, 38, 39, 39]);
});

test('a team that has none under way finds a place, however many came before it, until 64 others hold one', () => {
  const places = new Places();
  for (let team = 0; team < 64; team++) expect(fill(places, hooksOf(team))).not.toEqual({});
  expect(places.next([hook(1000, 0)])).toEqual(hook(1000, 0));
  for (let team = 64; places.next([hook(team, 0)]) !== undefined; team++) places.take(hook(team, 0));
  expect(places.roomFor(hook(1001, 0))).toBe(0);
});

test('whoever has the fewest gets the place that becomes free', () => {
  const places = new Places();
  fill(places, hooksOf(1));
  const give = places.take(hook(2, 0));
  expect(places.next([...hooksOf(1), hook(2, 1), hook(3, 0)])).toEqual(hook(3, 0));
  expect(places.next([...hooksOf(1), hook(2, 0), hook(2, 1)])).toEqual(hook(2, 1));
  give();
  expect(places.roomFor(hook(2, 0))).toBe(4);
});

test('failing receivers have one place each, and 64 together', () => {
  const places = new Places();
  const begun = fill(
    places,
    [1, 2, 3, 4].flatMap(team => hooksOf(team, true)),
  );
  expect(Object.values(begun)).toEqual([16, 16, 16, 16]);
  expect(places.roomFor(hook(5, 0, true))).toBe(0);
  expect(places.roomFor(hook(5, 0))).toBe(4);
});
