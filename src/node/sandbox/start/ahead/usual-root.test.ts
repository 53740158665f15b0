import { expect, test } from 'bun:test';
import { createUsualRoot, isSameRoot } from './usual-root.ts';

const [base, other] = [['sha256:a'], ['sha256:a', 'sha256:b']];

test('a root that is asked for again and again is wanted for all standby sandboxes but one', () => {
  const usual = createUsualRoot(() => 4);
  expect(usual.wanted()).toBeUndefined();
  usual.note(base);
  expect(usual.wanted()?.count).toBe(0);
  for (let create = 1; create < 8; create++) usual.note(base);
  expect(usual.wanted()).toEqual({ root: base, count: 3 });
});

test('if two take turns, one of them stays the usual one, for its share', () => {
  const usual = createUsualRoot(() => 4);
  for (let create = 0; create < 20; create++) {
    for (const layers of [base, other]) usual.note(layers);
    expect(usual.wanted()?.root).toEqual(base);
  }
  expect(usual.wanted()?.count).toBe(2);
});

test('a root that is asked for instead takes over, and creates without a root ahead have their share too', () => {
  const usual = createUsualRoot(() => 4);
  for (let create = 0; create < 8; create++) usual.note(base);
  for (let create = 0; create < 8; create++) usual.note(other);
  expect(usual.wanted()).toEqual({ root: other, count: 3 });
  for (let create = 0; create < 6; create++) usual.note(null);
  expect(usual.wanted()).toEqual({ root: other, count: 1 });
  for (let create = 0; create < 2; create++) usual.note(null);
  expect(usual.wanted()).toBeUndefined();
});

test('a root that is forgotten is wanted no more', () => {
  const usual = createUsualRoot(() => 4);
  for (let create = 0; create < 8; create++) usual.note(create < 2 ? other : base);
  usual.forget(root => isSameRoot(root, base));
  expect(usual.wanted()).toEqual({ root: other, count: 1 });
});

test('a pool of one keeps it for whoever comes', () => {
  const usual = createUsualRoot(() => 1);
  for (let create = 0; create < 8; create++) usual.note(base);
  expect(usual.wanted()?.count).toBe(0);
});

test('a pool that has grown remembers more creates, and has the root for as many more', () => {
  let size = 2;
  const usual = createUsualRoot(() => size);
  for (let create = 1; create <= 10; create++) {
    size = Math.max(2, create);
    usual.note(base);
  }
  expect(usual.wanted()).toEqual({ root: base, count: 5 });
  for (let create = 0; create < 10; create++) usual.note(other);
  expect(usual.wanted()).toEqual({ root: base, count: 5 });
  size = 2;
  // The last creates, as many as are remembered for the present size of the pool, asked for this.
  expect(usual.wanted()).toEqual({ root: base, count: 0 });
});

test('a large pool sees as soon as one of sixteen what is asked for often, and what instead', () => {
  const usual = createUsualRoot(() => 64);
  usual.note(base);
  expect(usual.wanted()).toEqual({ root: base, count: 2 });
  for (let create = 1; create < 64; create++) usual.note(base);
  expect(usual.wanted()).toEqual({ root: base, count: 63 });
  for (let create = 0; create < 22; create++) usual.note(other);
  expect(usual.wanted()).toEqual({ root: other, count: 44 });
});

test('roots are the same where all layers are, in their order', () => {
  expect(isSameRoot(base, ['sha256:a'])).toBe(true);
  expect(isSameRoot(base, other)).toBe(false);
  expect(isSameRoot(['sha256:b', 'sha256:a'], other)).toBe(false);
  expect(isSameRoot(null, [])).toBe(false);
});
