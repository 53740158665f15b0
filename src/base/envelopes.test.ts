import { expect, test } from 'bun:test';
import { createMessageReader, envelopeOf } from './envelopes.ts';

test('a stream has the same messages in parts of any size, empty ones too', () => {
  const bytes = Buffer.concat([
    envelopeOf(Buffer.from('abc')),
    Buffer.from([1, 0, 0, 0, 0]),
    Buffer.from([2, 0, 0, 0, 1]),
    Buffer.from('d'),
  ]);
  for (const size of [1, 2, 5, 8, 100]) {
    const seen: [number, string][] = [];
    const take = createMessageReader((flags, payload) => seen.push([flags, payload.toString()]));
    for (let at = 0; at < bytes.length; at += size) take(bytes.subarray(at, at + size));
    expect(seen).toEqual([
      [0, 'abc'],
      [1, ''],
      [2, 'd'],
    ]);
  }
});

test('an overlong message is refused before all of it has come', () => {
  expect(() => createMessageReader(() => {})(Buffer.from([0, 1, 0, 0, 0]))).toThrow('too long');
});
