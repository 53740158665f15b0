import { expect, test } from 'bun:test';
import { tokensOf } from './tokens.ts';

const shown = (path: string, text: string) =>
  tokensOf(path, text).map(({ kind, from, to }) => `${kind} ${text.slice(from, to)}`);

test('programs have colours by the ending of their name', () => {
  expect(shown('/a/main.py', 'def f(x): # one\n  return "a # b" + 12')).toEqual([
    'keyword def',
    'comment # one',
    'keyword return',
    'string "a # b"',
    'number 12',
  ]);
  expect(shown('x.ts', 'const a = `//`; /* if\n */ b.return = 0xff')).toEqual([
    'keyword const',
    'string `//`',
    'comment /* if\n */',
    'number 0xff',
  ]);
  expect(shown('Dockerfile', 'FROM node:22\nRUN echo $#')).toEqual(['keyword FROM', 'number 22', 'keyword RUN']);
  expect(shown('a.html', '<a href="x"><!-- b --></a>')).toContain('comment <!-- b -->');
  expect(shown('notes', 'if "x"')).toEqual([]);
});

test('what never ends takes a time that grows with its length', () => {
  const begun = performance.now();
  for (const part of ['"', "'", '/*', '`', '"""', '#', '\\', '<!--'])
    for (const path of ['a.js', 'a.py', 'a.sql', 'a.html', 'a.md']) tokensOf(path, part.repeat(60_000));
  // 40 texts take milliseconds each, but minutes if one took the square of its length.
  expect(performance.now() - begun).toBeLessThan(30_000);
});
