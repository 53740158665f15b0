import { expect, test } from 'bun:test';
import { holdPlaces } from './hold-places.ts';

const row = (id: string, version = 1) => ({ id, version });
const hold = (shown: string[], latest: ReturnType<typeof row>[]) => {
  const { rows, waiting } = holdPlaces(
    shown.map(id => row(id)),
    latest,
    ({ id }) => id,
  );
  return { rows: rows.map(({ row, isGone }) => `${row.id}${row.version}${isGone ? ' gone' : ''}`), waiting };
};

test('rows keep their places and show what they are now', () => {
  expect(hold(['a', 'b', 'c'], [row('c', 2), row('a', 2)])).toEqual({ rows: ['a2', 'b1 gone', 'c2'], waiting: 0 });
});

test('new rows above wait, and new rows below appear', () => {
  expect(hold(['b', 'c'], [row('a'), row('b'), row('x'), row('c'), row('d')])).toEqual({
    rows: ['b1', 'c1', 'd1'],
    waiting: 2,
  });
  expect(hold([], [row('a')])).toEqual({ rows: ['a1'], waiting: 0 });
});
