import { expect, test } from 'bun:test';
import { importsOf } from './imports.ts';
import { isTest, sourceFiles } from './source-files.ts';

/**
 * The layers of a room of the API, and which others each may import, including types. A room is a resource, and all
 * rooms have the same layers: a stranger finds the statement behind an answer the same way in each.
 *
 * `record`: loose files of a room, with the types that all of its layers use. `http` and `server` translate between
 * requests and rules: they name the database in what a route uses, but nothing inside it.
 */
const layers: Record<string, string[]> = {
  record: ['record'],
  database: ['record'],
  placement: ['database'],
  store: ['record', 'database'],
  directory: ['record'],
  rules: ['directory', 'store', 'record', 'placement', 'database'],
  workflows: ['rules', 'directory', 'store', 'record', 'placement', 'database'],
  delivery: ['rules', 'store', 'record', 'database'],
  reconcilers: ['workflows', 'rules', 'directory', 'store', 'record', 'placement', 'database'],
  http: ['workflows', 'rules', 'record', 'placement', 'database'],
  /** The files of the built dashboard. */
  dashboard: [],
  server: ['http', 'rules', 'record', 'dashboard'],
  /**
   * What the command line and the first start do with the state, and builds of the templates that come with the
   * platform.
   */
  local: ['rules', 'store', 'record', 'database'],
  /** Whether a data directory and a database belong together; backups of both. */
  installation: ['database'],
  backup: ['installation', 'rules', 'store', 'record', 'database'],
  shipped: ['rules', 'store', 'record'],
};

const rooms = new Set(
  'blob build cluster credential event identity metrics operator repeat replica sandbox secret session snapshot team template volume webhook'.split(
    ' ',
  ),
);

/** Values of the database that `http` may import: none. It names only types of it. */
const opaque = ['src/api/database/db.ts', 'src/api/database/health.ts'];

const files = sourceFiles(['src/api']).filter(({ path }) => !isTest(path));

/** The layer of a file; `root` for files that assemble the API. */
function layerOf(path: string): string {
  const [room = '', layer = '', ...rest] = path.split('/').slice(2);
  if (layer === '') return 'root';
  if (!rooms.has(room)) return room;
  return rest.length === 0 ? 'record' : layer;
}

test('every folder of the API is a layer of a room, or one of those that all rooms stand on', () => {
  const found = new Set(files.map(({ path }) => layerOf(path)).filter(layer => layer !== 'root'));
  expect([...found].toSorted()).toEqual(Object.keys(layers).toSorted());
});

test('layers of the API import those below them, types included', () => {
  let seen = 0;
  const wrong = files.flatMap(file =>
    importsOf(file).flatMap(({ target, typeOnly }) => {
      if (!target?.startsWith('src/api/')) return [];
      const [from, to] = [layerOf(file.path), layerOf(target)];
      if (from === to || from === 'root') return [];
      seen++;
      if (from === 'http' && to === 'database')
        return typeOnly && opaque.includes(target) ? [] : [`${file.path} imports ${target}`];
      return layers[from]?.includes(to) ? [] : [`${file.path} imports ${target}`];
    }),
  );
  expect(seen).toBeGreaterThan(300);
  expect(wrong).toEqual([]);
});

// Clients' spelling is the business of http; below it, everything has the platform's own spelling.
test('names of the wire stay in http', () => {
  const wireName = /(?<![\w.'`"-])(?:[a-z]+ID|minFreeDiskMb|memoryMB)\b(?!['`"])/g;
  const below = files.filter(({ path }) =>
    ['rules', 'workflows', 'store', 'reconcilers', 'directory', 'delivery'].includes(layerOf(path)),
  );
  expect(below.length).toBeGreaterThan(100);
  const wrong = below.flatMap(({ path, text }) =>
    [...text.replace(/'[^'\n]*'|`[^`]*`|"[^"\n]*"|\/\/.*|\/\*[\s\S]*?\*\//g, '').matchAll(wireName)].map(
      ([name]) => `${path}: ${name}`,
    ),
  );
  expect(wrong).toEqual([]);
});

test('a folder of the API has no more files than one sees at a glance', () => {
  const counts = Map.groupBy(sourceFiles(['src/api']), ({ path }) => path.slice(0, path.lastIndexOf('/')));
  expect(counts.size).toBeGreaterThan(30);
  expect([...counts].filter(([, inFolder]) => inFolder.length > 20).map(([folder]) => folder)).toEqual([]);
});

/**
 * Functions that no test calls directly: parts of statements, and those that write a row's event or lock within other
 * statements.
 */
const partsOfStatements = /\/(?:as-it-was|ended|events|labels|lock|row)\.ts$/;

// A statement that only runs in tests of a whole platform is tested just in the cases that happen to occur there.
test('every store has tests that call its statements', () => {
  const stores = files.filter(({ path }) => layerOf(path) === 'store' && !partsOfStatements.test(path));
  expect(stores.length).toBeGreaterThan(45);
  const tests = sourceFiles(['src', 'test']).filter(({ path }) => isTest(path));
  const called = new Set(tests.flatMap(file => importsOf(file).map(({ target }) => target)));
  expect(stores.map(({ path }) => path).filter(path => !called.has(path))).toEqual([]);
});
