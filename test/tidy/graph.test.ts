import { expect, test } from 'bun:test';
import { importsOf } from './imports.ts';
import { isTest, sourceFiles } from './source-files.ts';

const files = sourceFiles(['src', 'test', 'bench']);
const edges = new Map(files.map(file => [file.path, importsOf(file).flatMap(({ target }) => (target === undefined ? [] : [target]))]));

// A cycle means that neither file can be read, tested or moved without the other.
test('no import cycle, types included', () => {
  expect(edges.size).toBeGreaterThan(60);
  expect(cycles()).toEqual([]);
});

// Code that only its own test reaches is kept working for nobody.
test('every file of src is reached from a composition root', () => {
  const roots = files.filter(file => file.path.startsWith('src/bin/') && !isTest(file.path)).map(file => file.path);
  expect(roots.length).toBeGreaterThanOrEqual(2);
  const reached = reachable(roots);
  expect(reached.size).toBeGreaterThan(30);
  const dead = files.filter(file => file.path.startsWith('src/') && !isTest(file.path) && !reached.has(file.path));
  expect(dead.map(file => file.path)).toEqual([]);
});

test('every file of test is a test or is reached from one', () => {
  const tests = files.filter(file => isTest(file.path)).map(file => file.path);
  expect(tests.length).toBeGreaterThan(15);
  const reached = reachable(tests);
  const dead = files.filter(file => file.path.startsWith('test/') && !reached.has(file.path));
  expect(dead.map(file => file.path)).toEqual([]);
});

function reachable(from: string[]): Set<string> {
  const reached = new Set<string>();
  const waiting = [...from];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (reached.has(path)) continue;
    reached.add(path);
    waiting.push(...(edges.get(path) ?? []));
  }
  return reached;
}

/** Each cycle once, as the chain of its files. */
function cycles(): string[] {
  const done = new Set<string>();
  const found: string[] = [];
  const visit = (path: string, trail: string[]) => {
    const start = trail.indexOf(path);
    if (start >= 0) {
      found.push([...trail.slice(start), path].join(' → '));
      return;
    }
    if (done.has(path)) return;
    for (const target of edges.get(path) ?? []) visit(target, [...trail, path]);
    done.add(path);
  };
  for (const path of edges.keys()) visit(path, []);
  return found;
}
