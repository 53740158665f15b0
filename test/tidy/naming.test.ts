import { expect, test } from 'bun:test';
import { importsOf } from './imports.ts';
import { isTest, sourceFiles } from './source-files.ts';

const files = sourceFiles(['src', 'test', 'bench', 'scripts'], ['.ts', '.mjs']);

/** Almost every file is far below; one that reaches this has become about two things. */
const linesMax = 400;
/** Half of all files are to stay below this, so that a file can be read in one go. */
const medianLinesMax = 150;

// A path typed on one machine must work on every other, whatever its file system folds.
test('files and folders are named in kebab-case', () => {
  expect(files.length).toBeGreaterThan(60);
  const wrong = files.filter(({ path }) => !path.split('/').every(part => /^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9-]+)*$/.test(part)));
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
  expect(lengths.filter(({ lines }) => lines > linesMax)).toEqual([]);
  const sorted = lengths.map(({ lines }) => lines).sort((a, b) => a - b);
  expect(sorted[Math.floor(sorted.length / 2)] ?? 0).toBeLessThan(medianLinesMax);
});

// What crosses a process boundary is read by people who see only this file. Schemas and types document themselves by their
// members; what a function promises and what a number or a list means can't be seen from its name.
test('every function and plain value of protocol says what it promises', () => {
  const protocol = files.filter(file => file.path.startsWith('src/protocol/') && !isTest(file.path));
  expect(protocol.length).toBeGreaterThanOrEqual(3);
  let seen = 0;
  const bare = protocol.flatMap(file => {
    const lines = file.text.split('\n');
    return lines.flatMap((line, index) => {
      const [, name, value = ''] = /^export (?:async )?(?:const|function) (\w+)(?:[^=]*= (.*))?/.exec(line) ?? [];
      if (name === undefined) return [];
      seen++;
      const schema = /^[A-Z]/.test(name) && !/^['"`\d[]/.test(value);
      return schema || /\*\/\s*$/.test(lines[index - 1] ?? '') ? [] : [`${file.path}:${index + 1} ${name}`];
    });
  });
  expect(seen).toBeGreaterThan(10);
  expect(bare).toEqual([]);
});

// The built-in has the prefix, so that nothing of npm can take its name.
test('built-in modules are imported by their full name', () => {
  const builtIns = /^(fs|path|os|net|http|https|crypto|stream|child_process|util|url|events|zlib|tls|dns|worker_threads)(\/|$)/;
  const wrong = files.flatMap(file => importsOf(file).filter(({ specifier }) => builtIns.test(specifier)).map(({ specifier }) => `${file.path} imports ${specifier}`));
  expect(wrong).toEqual([]);
});
