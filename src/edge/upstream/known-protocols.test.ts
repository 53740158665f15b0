import { expect, test } from 'bun:test';
import { KnownProtocols } from './known-protocols.ts';

test('what a port speaks is known until it is another execution, another protocol, or too long ago', () => {
  const known = new KnownProtocols(2);
  known.heard('one', 80, 'h2');
  expect([known.of('one', 80), known.of('one', 81), known.of('two', 80)]).toEqual(['h2', undefined, undefined]);
  known.heard('one', 80, 'http/1.1');
  known.heard('two', 80, 'h2');
  expect([known.of('one', 80), known.of('two', 80)]).toEqual(['http/1.1', 'h2']);
  known.heard('three', 80, 'h2');
  expect([known.of('one', 80), known.of('two', 80), known.of('three', 80)]).toEqual([undefined, 'h2', 'h2']);
  known.heard('two', 80, undefined);
  expect(known.of('two', 80)).toBeUndefined();
});
