import { expect, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dir, '../..');
const { longSuites, minutesLong, suitesOf } = (await import(join(root, 'scripts/test/suites.mjs'))) as {
  longSuites: { name: string }[];
  minutesLong: string[];
  suitesOf(
    root: string,
  ): { name: string; argv(report: string): string[]; only(file: string): { argv(report: string): string[] } }[];
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
  // A suite that runs only through its own script also counts.
  expect(longSuites.filter(({ name }) => !names.some(suite => suite.startsWith(name)))).toEqual([]);
});

test('files that share a platform run in one process, also when one of them is repeated', () => {
  const suites = suitesOf(root);
  const [shared, other] = ['dashboard (Node.js)', 'e2e (Node.js)'].map(name => suites.find(one => one.name === name));
  const program = join(root, 'scripts/test/together.mjs');
  const argv = shared?.argv('report') ?? [];
  expect(argv.slice(argv.indexOf(program) + 1).length).toBeGreaterThan(5);
  expect(argv).not.toContain('--test');
  expect(shared?.only('test/dashboard/list.node.ts').argv('report').slice(-2)).toEqual([
    program,
    join(root, 'test/dashboard/list.node.ts'),
  ]);
  expect(other?.argv('report')).toContain('--test');
  expect(other?.argv('report')).not.toContain(program);
});
