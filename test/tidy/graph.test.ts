import { expect, test } from 'bun:test';
import { dirname, relative } from 'node:path';
import { importsOf } from './imports.ts';
import { isTest, sourceFiles } from './source-files.ts';

const files = sourceFiles(['src', 'test', 'bench']);
const imports = new Map(files.map(file => [file.path, importsOf(file)]));
const targetsOf = (path: string) =>
  (imports.get(path) ?? []).flatMap(({ target }) => (target === undefined ? [] : [target]));

// In a cycle, which file runs first depends on who was imported first. Types count too: two files that name each
// other's types are one file in two places. Neither can be read, tested or moved without the other.
test('no import cycle, types included', () => {
  expect(imports.size).toBeGreaterThan(60);
  expect(cycles()).toEqual([]);
});

// Code that only its own test reaches is maintained for nobody.
test('every file of src is reached from a composition root', () => {
  // Browsers load the dashboard: nothing of the platform imports it. A declaration says what the compiler can't find
  // out, and no code names it.
  const isRoot = (path: string) =>
    path.startsWith('src/bin/') || path === 'src/dashboard/main.tsx' || path.endsWith('.d.ts');
  const roots = files.filter(file => isRoot(file.path) && !isTest(file.path)).map(file => file.path);
  expect(roots.length).toBeGreaterThanOrEqual(3);
  const reached = reachable(roots);
  expect(reached.size).toBeGreaterThan(30);
  const dead = files.filter(file => file.path.startsWith('src/') && !isTest(file.path) && !reached.has(file.path));
  expect(dead.map(file => file.path)).toEqual([]);
});

/**
 * Files that no test starts: the program of the tests' set-up, those that write the API's document and state for later
 * versions, the proofs, the pictures of the dashboard, the laboratory's own, and those that it starts on its machines.
 */
const started =
  /^test\/(api\/(emit-openapi|database\/write-released)|node\/support\/make-base|proof\/([a-z-]+\.proof|mutation\/of-module)|dashboard\/pictures\/take|hosts\/(main|inside\/(client|figures|groups|survivors)))\.ts$/;

test('every file of test is a test or is reached from one, or from what people start', () => {
  const tests = files.filter(file => isTest(file.path) || started.test(file.path)).map(file => file.path);
  expect(tests.length).toBeGreaterThan(15);
  const reached = reachable(tests);
  const dead = files.filter(file => file.path.startsWith('test/') && !reached.has(file.path));
  expect(dead.map(file => file.path)).toEqual([]);
});

/** Files that a file names in a string, relative to its own folder: programs that it starts as separate processes. */
function startedBy(path: string): string[] {
  const text = files.find(file => file.path === path)?.text ?? '';
  const below = files.map(file => file.path).filter(other => other !== path && other.startsWith(`${dirname(path)}/`));
  return below.filter(other => {
    const name = relative(dirname(path), other);
    return [`'${name}'`, `/${name}`].some(written => text.includes(written));
  });
}

function reachable(from: string[]): Set<string> {
  const reached = new Set<string>();
  const waiting = [...from];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (reached.has(path)) continue;
    reached.add(path);
    waiting.push(...targetsOf(path), ...startedBy(path));
  }
  return reached;
}

/** Each cycle once, as a chain of files. */
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
    for (const target of targetsOf(path)) visit(target, [...trail, path]);
    done.add(path);
  };
  for (const path of imports.keys()) visit(path, []);
  return found;
}
