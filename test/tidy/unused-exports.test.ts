import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { isTest, type SourceFile, sourceFiles } from './source-files.ts';

/** Exports of a text, by name. */
function exportsOf({ text }: Pick<SourceFile, 'text'>): string[] {
  const declared =
    /^export (?:declare |abstract |async )*(?:const|let|function\*?|class|type|interface|enum) (?:\{([^}]*)\}|(\w+))/gm;
  const names = [...text.matchAll(declared)].flatMap(([, several, one]) =>
    one === undefined ? (several ?? '').split(',').map(name => name.split(':').at(-1)?.trim() ?? '') : [one],
  );
  return [...new Set(names)].filter(name => name !== '');
}

/** What a file imports: the file that it names, and the names, `*` for all. */
function importedBy({ path, text }: Pick<SourceFile, 'path' | 'text'>): { target: string; names: string[] }[] {
  const statement = /^import\s+(?:type\s+)?(?:\{([^}]*)\}|\*\s+as\s+\w+)\s+from\s+'(\.[^']+)'/gm;
  const dynamic = /\bimport\(\s*'(\.[^']+)'\s*\)/g;
  const of = (specifier: string, list: string | undefined) => ({
    target: join(path, '..', specifier),
    names: list === undefined ? ['*'] : list.split(',').map(nameOf),
  });
  return [
    ...[...text.matchAll(statement)].map(([, list, specifier = '']) => of(specifier, list)),
    ...[...text.matchAll(dynamic)].map(([, specifier = '']) => of(specifier, undefined)),
  ];
}

const nameOf = (item: string) =>
  item
    .trim()
    .replace(/^type /, '')
    .split(' as ')[0] ?? '';

/** Exports that only their own file names, as `path name`. */
function unused(files: readonly SourceFile[]): string[] {
  const used = new Map<string, Set<string>>();
  for (const file of files)
    for (const { target, names } of importedBy(file)) {
      const known = used.get(target) ?? new Set();
      used.set(target, known);
      for (const name of names) known.add(name);
    }
  return files.flatMap(({ path, text }) => {
    const users = used.get(path);
    if (isTest(path) || users?.has('*')) return [];
    return exportsOf({ text })
      .filter(name => !users?.has(name))
      .map(name => `${path} ${name}`);
  });
}

// An export is a promise to others: if nobody uses it, it is one more thing to maintain, and hides what is dead.
test('every export is used by another file', () => {
  const files = sourceFiles(['src', 'test', 'bench']);
  expect(files.flatMap(exportsOf).length).toBeGreaterThan(2000);
  expect(unused(files)).toEqual([]);
});

test('an export that nobody uses is found, and one that somebody does is not', () => {
  const file = (path: string, text: string) => ({ path, text, code: text });
  const files = [
    file(
      'src/a.ts',
      'export type A = 1;\nexport const { b, c: d } = x;\nexport async function e() {}\nexport class F {}',
    ),
    file('src/b.ts', "import { type A, d as other } from './a.ts';\nimport { e } from '../src/a.ts';"),
    file('src/c.ts', 'export const all = 1;'),
    file('src/d.test.ts', `const c = await import(${"'./c.ts'"});\nexport const ofTests = 1;`),
  ];
  expect(unused(files)).toEqual(['src/a.ts b', 'src/a.ts F']);
});
