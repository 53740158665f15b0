import { expect, test } from 'bun:test';
import { hexLines } from './content.ts';

test('bytes are lines of sixteen, the last as short as it is', () => {
  const bytes = new TextEncoder().encode('0123456789abcdef<\u0000>');
  expect(hexLines(bytes)).toEqual([
    '00000000  30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66  0123456789abcdef',
    '00000010  3c 00 3e                                         <.>',
  ]);
  expect(hexLines(new Uint8Array())).toEqual([]);
});
