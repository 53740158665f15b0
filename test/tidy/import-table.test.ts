import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { importsOf } from './imports.ts';
import { rooms } from './rooms.ts';
import { isTest, root, sourceFiles } from './source-files.ts';

/**
 * Which component may import which. Components run in different processes, even on different machines (a node, the
 * inside of a sandbox), and meet only in `protocol`: an import between two of them would tie them to one process for
 * ever. Only the composition roots in `bin` assemble them.
 */
const table: Record<string, string[]> = {
  bin: [
    'agent',
    'api',
    'blob',
    'builder',
    'cli',
    'dashboard',
    'edge',
    'gate',
    'node',
    'protocol',
    'supervisor',
    'wire',
    'base',
  ],
  agent: ['protocol', 'base'],
  blob: ['protocol', 'base'],
  builder: ['protocol', 'base'],
  api: ['protocol', 'base'],
  cli: ['protocol', 'base'],
  dashboard: ['protocol', 'base'],
  edge: ['http1', 'protocol', 'base'],
  gate: ['protocol', 'base'],
  node: ['http1', 'protocol', 'base'],
  supervisor: ['wire', 'base'],
  wire: ['protocol', 'base'],
  http1: ['base'],
  protocol: ['base'],
  base: [],
};

/**
 * Packages that a component may use. The agent runs in every sandbox, and the node runs as root beside them: they load
 * only our own code. Elsewhere, each package must earn its place here.
 */
const packages: Record<string, string[]> = {
  cli: ['commander', 'e2b'],
  // Bundled into what browsers load; none of it runs in the platform.
  dashboard: [
    '@tanstack/react-query',
    '@tanstack/react-router',
    '@xterm/addon-fit',
    '@xterm/addon-search',
    '@xterm/xterm',
    'lucide-react',
    'react',
    'react-dom',
    'uplot',
  ],
  api: ['@sinclair/typebox', 'kysely', 'lru-cache', 'oauth4webapi', 'pg'],
  node: ['lru-cache'],
  protocol: ['@sinclair/typebox'],
  wire: ['@sinclair/typebox'],
};

const files = sourceFiles(['src']);
const componentOf = (path: string) => path.split('/')[1] ?? '';

test('every folder of src is a component of the table', () => {
  expect(files.length).toBeGreaterThan(40);
  expect(files.filter(file => table[componentOf(file.path)] === undefined).map(file => file.path)).toEqual([]);
});

test('imports between components go one way, as the table says', () => {
  let seen = 0;
  const wrong = files.flatMap(file =>
    importsOf(file).flatMap(({ target }) => {
      if (target === undefined) return [];
      seen++;
      // What several tests need is no part of the product.
      if (isTest(file.path) && target.startsWith('test/support/')) return [];
      const [from, to] = [componentOf(file.path), componentOf(target)];
      return target.startsWith('src/') && (from === to || table[from]?.includes(to))
        ? []
        : [`${file.path} imports ${target}`];
    }),
  );
  expect(seen).toBeGreaterThan(60);
  expect(wrong).toEqual([]);
});

/** Files of a component except tests, each with its room. */
const filesIn = (component: string) =>
  files
    .filter(file => file.path.startsWith(`${component}/`) && !isTest(file.path))
    .map(file => ({ file, room: roomOf(component, file.path) }));
const roomOf = (component: string, path: string) => path.slice(component.length + 1).replace(/(\/.*|\.ts)$/, '');

for (const [component, table] of Object.entries(rooms)) {
  const names = Object.keys(table);

  test(`rooms of ${component} are those of the table, and each needs those above it alone`, () => {
    const there = new Set(filesIn(component).map(({ room }) => room));
    expect(names.filter(name => !there.has(name))).toEqual([]);
    expect([...there].filter(room => !names.includes(room))).toEqual([]);
    const upwards = names.flatMap((name, index) =>
      (table[name] ?? [])
        .filter(needed => !names.slice(0, index).includes(needed))
        .map(needed => `${name} -> ${needed}`),
    );
    expect(upwards).toEqual([]);
  });

  test(`imports between rooms of ${component} go as the table says, types included`, () => {
    let seen = 0;
    const wrong = filesIn(component).flatMap(({ file, room }) =>
      importsOf(file).flatMap(({ target }) => {
        if (!target?.startsWith(`${component}/`)) return [];
        const to = roomOf(component, target);
        if (to === room) return [];
        seen++;
        return table[room]?.includes(to) ? [] : [`${file.path} imports ${target}`];
      }),
    );
    expect(seen).toBeGreaterThan(names.length);
    expect(wrong).toEqual([]);
  });
}

test('every relative import names a file that is there, with its ending', () => {
  const wrong = sourceFiles(['src', 'test', 'bench']).flatMap(file =>
    importsOf(file)
      .filter(({ specifier, target }) => specifier.startsWith('.') && target === undefined)
      .map(({ specifier }) => `${file.path} imports ${specifier}`),
  );
  expect(wrong).toEqual([]);
});

test('packages are used where the table allows them, and the manifest names them', () => {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
    devDependencies: Record<string, string>;
  };
  let seen = 0;
  const wrong = files
    .filter(file => !isTest(file.path))
    .flatMap(file =>
      importsOf(file).flatMap(({ specifier }) => {
        if (/^(\.|node:|bun$|bun:)/.test(specifier)) return [];
        seen++;
        const name = specifier
          .split('/')
          .slice(0, specifier.startsWith('@') ? 2 : 1)
          .join('/');
        const component = componentOf(file.path);
        const named = component === 'dashboard' ? manifest.devDependencies : manifest.dependencies;
        const allowed = packages[component]?.includes(name) && name in named;
        return allowed ? [] : [`${file.path} imports ${specifier}`];
      }),
    );
  expect(seen).toBeGreaterThan(3);
  expect(wrong).toEqual([]);
});
