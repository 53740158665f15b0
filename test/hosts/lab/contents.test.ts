import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { checkout, missingIn } from './contents.ts';

const then = { npm: { 'node_modules/a': '1', 'node_modules/b': '1' }, runsc: 'x', layers: ['/c/1'] };

test('an image without anything takes it all', () => {
  const paths = missingIn(undefined, then);
  expect(paths).toContain(join(checkout, 'node_modules'));
  expect(paths).toContain('/c/1');
  expect(paths).toContain(join(checkout, 'dist/runsc.from'));
});

test('an image of before takes what is new or another one', () => {
  const now = { ...then, runsc: 'y', layers: ['/c/1', '/c/2'] };
  const paths = missingIn(then, now);
  expect(paths).toContain('/c/2');
  expect(paths).not.toContain('/c/1');
  expect(paths).toContain(join(checkout, 'dist/runsc.from'));
  expect(missingIn(then, then)).not.toContain(join(checkout, 'dist/runsc.from'));
  expect(paths).not.toContain(join(checkout, 'node_modules'));
  // This package is there, in any checkout.
  const typescript = 'node_modules/typescript';
  expect(missingIn(then, { ...then, npm: { ...then.npm, [typescript]: '1' } })).toContain(join(checkout, typescript));
});
