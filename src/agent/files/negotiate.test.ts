import { expect, test } from 'bun:test';
import { negotiateCoding } from './negotiate.ts';

const both = (name: 'gzip' | 'identity') => ({ name, mayBeIdentity: true });
const gzipOnly = { name: 'gzip' as const, mayBeIdentity: false };

test.each([
  [null, both('identity')],
  ['', both('identity')],
  ['br', both('identity')],
  ['gzip', both('gzip')],
  ['X-GZip', both('gzip')],
  ['br, gzip;q=0.5', both('gzip')],
  ['gzip;q=0', both('identity')],
  ['gzip;q=much', both('identity')],
  ['gzip;level=9', both('gzip')],
  ['gzip; Q=0.2, identity ;q=0.3', both('identity')],
  ['identity;q=0.2, gzip;q=0.3', both('gzip')],
  ['identity, gzip', both('identity')],
  ['gzip, identity', both('gzip')],
  ['*', both('identity')],
  ['*, gzip;q=0.5', both('identity')],
  ['gzip, *;q=0', gzipOnly],
  ['gzip, *;q=0, identity;q=0.1', both('gzip')],
  ['identity;q=0.1, *;q=0', both('identity')],
  ['gzip;q=0.1, identity;q=0', gzipOnly],
  ['*, identity;q=0', gzipOnly],
] as const)('%p is served as its favourite among ours', (header, coding) => {
  expect(negotiateCoding(header)).toEqual(coding);
});

test.each(['identity;q=0', '*;q=0', 'br, identity;q=0', 'gzip;q=0, *;q=0'])('nothing of ours suits %s', header => {
  expect(() => negotiateCoding(header)).toThrow(expect.objectContaining({ code: 'not_acceptable' }));
});
