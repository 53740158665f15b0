import { expect, test } from 'bun:test';
import { readViews, viewsMax, withView } from './saved-views.ts';

test('views are read as the URL is: what is not known is left out', () => {
  expect(readViews(JSON.stringify([{ name: 'mine', search: { show: 'paused', x: 1 } }, { name: 3 }, null]))).toEqual([
    { name: 'mine', search: { show: 'paused' } },
  ]);
  for (const one of [{ name: '', search: {} }, { name: 'x' }, { name: 'x', search: null }, { search: {} }, 'x'])
    expect(readViews(JSON.stringify([one]))).toEqual([]);
  const [long] = readViews(JSON.stringify([{ name: 'x'.repeat(61), search: {} }]));
  expect(long?.name).toHaveLength(60);
  expect(readViews('{')).toEqual([]);
  expect(readViews('{}')).toEqual([]);
  expect(readViews(null)).toEqual([]);
});

test('a view takes the place of one with its name, and the oldest goes when there are too many', () => {
  const many = Array.from({ length: viewsMax }, (_, index) => ({ name: `v${index}`, search: {} }));
  const next = withView(many, { name: 'new', search: {} });
  expect(next).toHaveLength(viewsMax);
  expect(next.map(({ name }) => name)).not.toContain('v0');
  expect(withView(many, { name: 'v3', search: { show: 'ended' } })).toHaveLength(viewsMax);
});
