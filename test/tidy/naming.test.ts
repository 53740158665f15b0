import { expect, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { importsOf } from './imports.ts';
import { isTest, root, sourceFiles } from './source-files.ts';

const files = sourceFiles(['src', 'test', 'bench', 'scripts'], ['.ts', '.tsx', '.mjs']);

/**
 * Almost every file is far below; one that reaches this has become about two things. A table of cases may be longer.
 */
const linesMax = (path: string) => (path.startsWith('test/') ? 750 : 400);
/** Half of all files must stay below this, so that a file can be read in one go. */
const medianLinesMax = 150;
/** About twenty; a folder with more is two rooms. */
const filesMax = 24;

// A path typed on one machine must work on every other, whatever case its file system ignores.
test('files and folders are named in kebab-case', () => {
  expect(files.length).toBeGreaterThan(60);
  const wrong = files.filter(
    ({ path }) => !path.split('/').every(part => /^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9-]+)*$/.test(part)),
  );
  expect(wrong.map(file => file.path)).toEqual([]);
});

// Such names say that something is used, not what it is, and so collect everything.
test('no folder or file is named after nothing', () => {
  const empty = /(^|\/)(utils?|helpers?|services?|managers?|common|misc|shared|index)(\/|\.[a-z]+$)/;
  // The native helper is a process, and that is its name.
  const named = ['src/node/native/helper.ts'];
  expect(files.filter(({ path }) => empty.test(path) && !named.includes(path)).map(file => file.path)).toEqual([]);
});

test('files stay about one thing', () => {
  const lengths = files.map(file => ({ path: file.path, lines: file.text.split('\n').length }));
  expect(lengths.filter(({ path, lines }) => lines > linesMax(path))).toEqual([]);
  const sorted = lengths.map(({ lines }) => lines).sort((a, b) => a - b);
  expect(sorted[Math.floor(sorted.length / 2)] ?? 0).toBeLessThan(medianLinesMax);
});

// A folder is a room: its content can be seen at a glance. Unit tests stand beside what they test and count with it.
test('folders have few files', () => {
  const counted = files.filter(({ path }) => !(path.startsWith('src/') && isTest(path)));
  const folders = Map.groupBy(counted, ({ path }) => dirname(path));
  expect(folders.size).toBeGreaterThan(100);
  expect([...folders].filter(([, inFolder]) => inFolder.length > filesMax).map(([folder]) => folder)).toEqual([]);
});

// Files that a command has left where it was run would be committed with the next change.
test('the root holds what people and tools look for there', () => {
  const known =
    /^(ARCHITECTURE|CHANGELOG|CONTRIBUTING|README|SECURITY)\.md$|^LICENSE$|^(package|package-lock|tsconfig)\.json$|^\.git$/;
  const settings = /^\.(gitignore|oxfmtrc\.json|oxlintrc\.json|env)$|\.log$/;
  const folders = /^(bench|bin|clients|docs|native|ops|scripts|src|templates|test|node_modules|dist|\.ci|\.git)$/;
  const unknown = readdirSync(root, { withFileTypes: true }).filter(entry =>
    entry.isDirectory() ? !folders.test(entry.name) : !known.test(entry.name) && !settings.test(entry.name),
  );
  expect(unknown.map(({ name }) => name)).toEqual([]);
});

// Built-in modules have the prefix, so that no npm package can take their name.
test('built-in modules are imported by their full name', () => {
  const builtIns =
    /^(fs|path|os|net|http|https|crypto|stream|child_process|util|url|events|zlib|tls|dns|worker_threads)(\/|$)/;
  const wrong = files.flatMap(file =>
    importsOf(file)
      .filter(({ specifier }) => builtIns.test(specifier))
      .map(({ specifier }) => `${file.path} imports ${specifier}`),
  );
  expect(wrong).toEqual([]);
});
