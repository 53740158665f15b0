import { expect, test } from 'bun:test';
import {
  asMessage,
  booleanField,
  bytesField,
  enumField,
  messageField,
  stringField,
  stringMapField,
  stringsField,
  uint32Field,
} from './message.ts';

test('a member goes by either name, and null is none', () => {
  expect(stringField({ someName: 'a', some_name: 'b' }, 'someName')).toBe('a');
  expect(stringField({ some_name: 'b' }, 'someName')).toBe('b');
  for (const message of [{}, { someName: null }, { some_name: null }]) {
    expect(stringField(message, 'someName')).toBeUndefined();
    expect(booleanField(message, 'someName')).toBeUndefined();
    expect(uint32Field(message, 'someName')).toBeUndefined();
    expect(messageField(message, 'someName')).toBeUndefined();
    expect(bytesField(message, 'someName')).toBeUndefined();
    expect(enumField(message, 'someName')).toBeUndefined();
    expect(stringsField(message, 'someName')).toEqual([]);
    expect(stringMapField(message, 'someName')).toEqual({});
  }
  expect([booleanField({ a: false }, 'a'), stringField({ a: '' }, 'a'), uint32Field({ a: 0 }, 'a')]).toEqual([
    false,
    '',
    0,
  ]);
});

test('numbers are whole and fit, as text too', () => {
  for (const [value, number] of [
    [7, 7],
    ['7', 7],
    [0xffff_ffff, 0xffff_ffff],
  ] as const)
    expect(uint32Field({ a: value }, 'a')).toBe(number);
  for (const value of [-1, 1.5, 0x1_0000_0000, '', 'x', true, {}, Number.NaN])
    expect(() => uint32Field({ a: value }, 'a')).toThrow('a must be a number from 0 to 4294967295');
});

test('bytes are base64 of either alphabet, padded or not', () => {
  for (const text of ['+/8=', '-_8=', '-_8', '+/8'])
    expect([...(bytesField({ a: text }, 'a') ?? [])]).toEqual([0xfb, 0xff]);
  expect(bytesField({ a: '' }, 'a')).toHaveLength(0);
});

test('lists and maps are of texts', () => {
  expect(stringsField({ a: ['b', ''] }, 'a')).toEqual(['b', '']);
  expect(stringMapField({ a: { B: 'c', D: '' } }, 'a')).toEqual({ B: 'c', D: '' });
  expect(enumField({ a: 'NAME' }, 'a')).toBe('NAME');
  expect(enumField({ a: 2 }, 'a')).toBe(2);
});

test('a field of another type is refused by its name', () => {
  for (const [run, says] of [
    [() => asMessage([]), 'the message must be an object, not a list'],
    [() => asMessage(null), 'the message must be an object, not null'],
    [() => asMessage('a', 'this'), 'this must be an object, not a string'],
    [() => stringField({ a: 1 }, 'a'), 'a must be a string, not a number'],
    [() => booleanField({ a: 'true' }, 'a'), 'a must be a boolean, not a string'],
    [() => messageField({ a: [] }, 'a'), 'a must be an object, not a list'],
    [() => stringsField({ a: 'b' }, 'a'), 'a must be a list of strings, not a string'],
    [() => stringsField({ a: ['b', 1] }, 'a'), 'a must be a list of strings, not a number'],
    [() => stringMapField({ a: { b: 1 } }, 'a'), 'a.b must be a string, not a number'],
    [() => stringMapField({ a: ['b'] }, 'a'), 'a must be an object, not a list'],
    [() => bytesField({ a: 1 }, 'a'), 'a must be a string, not a number'],
    [() => enumField({ a: true }, 'a'), 'a must be a name or a number, not a boolean'],
  ] as const)
    expect(run).toThrow(says);
});
