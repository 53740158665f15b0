import { expect, test } from 'bun:test';
import { parseReference } from './reference.ts';

test('references are trimmed, lower-cased and taken apart', () => {
  const cases: Array<[text: string, parts: [namespace: string | null, name: string, tag: string | null]]> = [
    ['base', [null, 'base', null]],
    [' Base ', [null, 'base', null]],
    ['team/name', ['team', 'name', null]],
    ['team/name:v1.2', ['team', 'name', 'v1.2']],
    ['name:default', [null, 'name', null]],
    ['a_b-c:1_2-3.4', [null, 'a_b-c', '1_2-3.4']],
    ['name:0f0e0d0c-0b0a-0908-0706-050403020100', [null, 'name', '0f0e0d0c-0b0a-0908-0706-050403020100']],
  ];
  for (const [text, [namespace, name, tag]] of cases)
    expect(parseReference(text, 'templateID')).toEqual({ namespace, name, tag });
});

test('an invalid reference is refused by the name of its field', () => {
  for (const text of [
    '',
    ' ',
    '/',
    ':',
    'a/',
    '/a',
    'a:',
    ':a',
    'a/b/c',
    'a:b:c',
    'a:b/c',
    'a b',
    'ä',
    'a.b',
    'a\n',
    '../a',
    'a%2fb',
  ]) {
    if (text === 'a\n') expect(parseReference(text, 'f').name).toBe('a');
    else expect(() => parseReference(text, 'f')).toThrow('f: ');
  }
});
