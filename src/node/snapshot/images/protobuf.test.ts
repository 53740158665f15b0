import { expect, test } from 'bun:test';
import { decodeFields, encodeFields, messageIn, numberIn, withMessages, withNumbers, type Field } from './protobuf.ts';

const inner: Field[] = [{ number: 2, wire: 0, value: 1_879_048_192n }];
const fields: Field[] = [
  { number: 1, wire: 0, value: 2n ** 64n - 1n },
  { number: 2, wire: 2, value: encodeFields(inner) },
  { number: 2000, wire: 5, value: Uint8Array.of(1, 2, 3, 4) },
  { number: 3, wire: 1, value: Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8) },
  { number: 4, wire: 2, value: new Uint8Array(0) },
];

test('a message survives being split into fields and put together', () => {
  const bytes = encodeFields(fields);
  expect(Buffer.from(encodeFields(decodeFields(bytes)))).toEqual(Buffer.from(bytes));
  expect(decodeFields(bytes).map(({ number }) => number)).toEqual([1, 2, 2000, 3, 4]);
});

test('the bytes are those of the protocol', () => {
  // The example of protobuf.dev: field 1 holds 150, field 2 "testing".
  expect([
    ...encodeFields([
      { number: 1, wire: 0, value: 150n },
      { number: 2, wire: 2, value: Buffer.from('testing') },
    ]),
  ]).toEqual([0x08, 0x96, 0x01, 0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67]);
});

test('fields are read and replaced by number', () => {
  expect(numberIn(messageIn(fields, 2) ?? [], 2)).toBe(1_879_048_192);
  expect(numberIn(fields, 99)).toBe(0);
  expect(messageIn(fields, 99)).toBeUndefined();
  const changed = withMessages(fields, 2, message => withNumbers(message, { 2: 5 }));
  expect(numberIn(messageIn(changed, 2) ?? [], 2)).toBe(5);
  expect(numberIn(messageIn(fields, 2) ?? [], 2)).toBe(1_879_048_192);
});

test('a message that is cut off or of an unknown kind is refused', () => {
  for (const bytes of [[0x08], [0x08, 0x80], [0x12, 0x07, 0x74], [0x0b], [0x0d, 1, 2]]) {
    expect(() => decodeFields(Uint8Array.from(bytes))).toThrow('malformed');
  }
});
