import { expect, test } from 'bun:test';
import { hideLiterals, placeholdersIn, replaceEach } from './placeholders.ts';

test('placeholders are found in their places, and nothing else is one', () => {
  expect(placeholdersIn('Bearer ${e2b.secrets.api-key}${e2b.identity.tokens.aws}', 'x')).toEqual([
    { kind: 'secret', name: 'api-key' },
    { kind: 'token', name: 'aws' },
  ]);
  for (const plain of ['', 'Bearer x', '$', '${', '${HOME}', '{e2b.secrets.a}', '${e2bx}', '$${PORT}'])
    expect(placeholdersIn(plain, 'x')).toEqual([]);
});

test.each([
  '${e2b.',
  '${e2b.}',
  '${e2b.secrets.}',
  '${e2b.secrets.a',
  '${e2b.secret.a}',
  '${e2b.identity.a}',
  '${e2b.secrets.{a}}',
  `\${e2b.secrets.${'a'.repeat(129)}}`,
])('%s is malformed', value => {
  expect(() => placeholdersIn(`a ${value} b`, 'rules["x"]')).toThrow('rules["x"]: holds a malformed placeholder');
});

test('a filled-in value is not searched again', () => {
  expect(
    replaceEach('a ${e2b.secrets.x} b ${e2b.secrets.y}', 'x', ({ name }) =>
      name === 'x' ? '${e2b.secrets.y}$&' : '2',
    ),
  ).toBe('a ${e2b.secrets.y}$& b 2');
});

test('literal parts are hidden, and names stay', () => {
  expect(hideLiterals('Bearer x')).toBe('***');
  expect(hideLiterals('')).toBe('');
  expect(hideLiterals('${e2b.secrets.a}')).toBe('${e2b.secrets.a}');
  expect(hideLiterals('x ${e2b.secrets.a}${e2b.identity.tokens.b}:y')).toBe(
    '***${e2b.secrets.a}${e2b.identity.tokens.b}***',
  );
});
