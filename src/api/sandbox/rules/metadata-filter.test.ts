import { expect, test } from 'bun:test';
import { parseMetadataFilter } from './metadata-filter.ts';

/** Pairs as clients encode them: each half, and the whole once more. */
const asClients = (pairs: [string, string][]) =>
  encodeURIComponent(pairs.map(pair => pair.map(encodeURIComponent).join('=')).join('&'));
const tooMany = 'metadata: has more than 50 pairs';
const malformed = 'metadata: must be key=value pairs';
const pairs = (count: number) => Array.from({ length: count }, (_, index): [string, string] => [`k${index}`, 'v']);

test('without a filter there are no pairs', () => {
  expect(parseMetadataFilter(undefined)).toEqual([]);
  expect(parseMetadataFilter('')).toEqual([]);
});

test('pairs are read as clients encode them, whatever they contain', () => {
  const odd: [string, string][] = [
    ['a&b', 'c=d'],
    ['user id', 'ä 100%'],
    ['empty', ''],
  ];
  expect(parseMetadataFilter(asClients(odd))).toEqual(odd);
});

test('pairs are read as a person writes them, encoded once', () => {
  expect(parseMetadataFilter('app=web&env=prod')).toEqual([
    ['app', 'web'],
    ['env', 'prod'],
  ]);
  // If it were decoded before it is split, it would have three halves.
  expect(parseMetadataFilter('a=b%3Dc')).toEqual([['a', 'b=c']]);
});

test.each(['a', '=b', 'a=b=c', 'a=b&', '&a=b', 'a=%E0%A4', '%', 'a=b&c'])('%s is no filter', text => {
  expect(() => parseMetadataFilter(text)).toThrow(malformed);
});

test('more pairs than are looked up are refused, however they are encoded', () => {
  const most = pairs(50);
  const plain = (list: [string, string][]) => list.map(pair => pair.join('=')).join('&');
  expect(parseMetadataFilter(plain(most))).toEqual(most);
  expect(parseMetadataFilter(asClients(most))).toEqual(most);
  expect(() => parseMetadataFilter(plain(pairs(51)))).toThrow(tooMany);
  expect(() => parseMetadataFilter(asClients(pairs(51)))).toThrow(tooMany);
});
