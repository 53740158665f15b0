import { expect, test } from 'bun:test';
import { readCall } from './read-literal.ts';

test('values of JavaScript and Python are read as they stand', () => {
  expect(readCall(`await f('a', { b: [1, -2.5, 1_000,], "c d": null, e: undefined });`, 'f')).toEqual({
    plain: ['a', { b: [1, -2.5, 1000], 'c d': null, e: null }],
    named: {},
  });
  expect(readCall('f(\n "a",\n  b=True, c={"d": None},\n)', 'f')).toEqual({
    plain: ['a'],
    named: { b: true, c: { d: null } },
  });
  expect(readCall('f()', 'f')).toEqual({ plain: [], named: {} });
});

test('escapes and quotes are those of the languages', () => {
  expect(readCall(String.raw`f("a\"b\n\u0041\x42", 'it\'s')`, 'f').plain).toEqual(['a"b\nAB', "it's"]);
  // No member's name can reach what all objects inherit.
  expect(Object.keys(readCall(`f({ "__proto__": { x: 1 } })`, 'f').plain[0] as object)).toEqual(['__proto__']);
});

test('what is no value says what is wrong', () => {
  const wrong = (text: string) => () => readCall(text, 'f');
  expect(wrong('g()')).toThrow('There is no f(…)');
  expect(wrong('f(x)')).toThrow('“x” is not understood');
  expect(wrong('f(1 + 1)')).toThrow('comma is missing');
  expect(wrong('f("a')).toThrow('does not end');
  expect(wrong('f({a})')).toThrow('has no value');
  expect(wrong(`f(${'['.repeat(50)}`)).toThrow('too deep');
  expect(wrong(`f("${'x'.repeat(20_001)}")`)).toThrow('too long');
  expect(wrong('f(1-1)')).toThrow('“1-1” is no number');
  expect(wrong(String.raw`f("\u00zz")`)).toThrow('An escape is not understood');
  expect(wrong('f(')).toThrow('It ends too early');
  expect(wrong('f([1, *])')).toThrow('“*” is not understood');
  expect(wrong('f({ 1: 2 })')).toThrow('A name is no text');
});

test('as much is read as a form may need', () => {
  const text = 'x'.repeat(20_000 - 'f("")'.length);
  expect(readCall(`f("${text}")`, 'f').plain).toEqual([text]);
  expect(() => readCall(`f(${'['.repeat(20)}${']'.repeat(20)})`, 'f')).not.toThrow();
  expect(() => readCall(`f(${'['.repeat(21)}${']'.repeat(21)})`, 'f')).toThrow('too deep');
  expect(readCall('f({\n  a : 1 ,\n  b\n: 2 })', 'f').plain).toEqual([{ a: 1, b: 2 }]);
});
