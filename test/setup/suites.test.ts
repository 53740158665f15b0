import { expect, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dir, '../..');
const { longSuites, minutesLong, suitesOf } = (await import(join(root, 'scripts/test/suites.mjs'))) as {
  longSuites: { name: string }[];
  minutesLong: string[];
  suitesOf(root: string): { name: string }[];
};

test('every folder of tests is a suite, once; the quick ones begin first, then those that take minutes', () => {
  const names = suitesOf(root).map(({ name }) => name);
  expect(names.slice(0, 4)).toEqual(['types', 'types (dashboard)', 'tidy', 'unit']);
  expect(names.slice(4, 4 + minutesLong.length)).toEqual(minutesLong);
  expect(names.length).toBe(new Set(names).size);
  const withTests = readdirSync(join(root, 'test'), { withFileTypes: true }).filter(
    entry =>
      entry.isDirectory() &&
      readdirSync(join(root, 'test', entry.name), { recursive: true, encoding: 'utf8' }).some(file =>
        /\.(test|node)\.ts$/.test(file),
      ),
  );
  expect(withTests.length).toBeGreaterThan(30);
  const missing = withTests.filter(({ name }) => !names.some(suite => suite === name || suite === `${name} (Node.js)`));
  expect(missing.map(({ name }) => name)).toEqual([]);
  // What runs by its own script alone is a suite too.
  expect(longSuites.filter(({ name }) => !names.some(suite => suite.startsWith(name)))).toEqual([]);
});
