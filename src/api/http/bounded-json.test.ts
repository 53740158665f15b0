import { expect, test } from 'bun:test';
import { jsonDepthMax, jsonValuesMax, parseBoundedJson } from './bounded-json.ts';

test('ordinary bodies are parsed, and what stands in strings does not count', () => {
  const body = { a: [1, { b: '[[[[{{{{,,,,"\\"' }], c: '\\', d: '"', e: '['.repeat(1000) };
  expect(parseBoundedJson(JSON.stringify(body))).toEqual(body);
  expect(parseBoundedJson('"\\\\"')).toBe('\\');
});

test('depth and number of values have exact bounds', () => {
  expect(parseBoundedJson('['.repeat(jsonDepthMax) + ']'.repeat(jsonDepthMax))).toBeArray();
  expect(() => parseBoundedJson('['.repeat(jsonDepthMax + 1))).toThrow(`nests deeper than ${jsonDepthMax}`);
  expect(parseBoundedJson(`[${'0,'.repeat(jsonValuesMax - 2)}0]`)).toBeArrayOfSize(jsonValuesMax - 1);
  expect(() => parseBoundedJson(`[${'0,'.repeat(jsonValuesMax)}0]`)).toThrow('members and elements');
  expect(() => parseBoundedJson('{"a":"')).toThrow('not valid JSON');
  expect(() => parseBoundedJson(']]]]]]]]]]]]]]')).toThrow('not valid JSON');
});

test('only values that are open at the same time nest, however they are written', () => {
  expect(parseBoundedJson(`[${'[],{},'.repeat(100)}0]`)).toBeArrayOfSize(201);
  for (const before of ['[ ', '["ab",', '["",', '["\\\\",', '["\\"[",', '{"a":'])
    expect(() => parseBoundedJson(before.repeat(33))).toThrow('request body: nests deeper than 32');
});

test('a body has at most 50,000 members and elements', () => {
  expect(parseBoundedJson(`[${'0,'.repeat(49_998)}0]`)).toBeArrayOfSize(49_999);
  expect(() => parseBoundedJson(`[${'0,'.repeat(50_000)}0]`)).toThrow('has more than 50000 members and elements');
});
