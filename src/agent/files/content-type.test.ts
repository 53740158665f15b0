import { expect, test } from 'bun:test';
import { sniffedBytes, sniffType, typeByName } from './content-type.ts';

const text = 'text/plain; charset=utf-8';
const unknown = 'application/octet-stream';

test.each([
  ['a.html', 'text/html; charset=utf-8'],
  ['a.b.png', 'image/png'],
  ['a.json', 'application/json; charset=utf-8'],
  ['a', undefined],
  ['a.', undefined],
  ['.png', undefined],
  ['a.nothing-known', undefined],
])('%s is %p by its name', (name, type) => {
  expect(typeByName(name)).toBe(type);
});

test.each([
  ['%PDF-1.7', 'application/pdf'],
  ['\x89PNG\r\n\x1a\n\0', 'image/png'],
  ['GIF89a', 'image/gif'],
  ['GIF88a', text],
  ['<html><', 'text/html; charset=utf-8'],
  [' <html>', text],
  ['', text],
  ['tab\t, lines\r\n\x0c, \x1b[0m and ä', text],
  ['\0', unknown],
  ['a\x7f', text],
])('a file that begins with %j is %s', (beginning, type) => {
  expect(sniffType(Buffer.from(beginning, 'latin1'))).toBe(type);
});

test('only the first bytes of a file are looked at, wherever they lie', () => {
  const bytes = Buffer.from(`\0${'x'.repeat(sniffedBytes)}\0`, 'latin1');
  expect(sniffType(bytes.subarray(1))).toBe(text);
  expect(sniffType(bytes.subarray(2))).toBe(unknown);
});
