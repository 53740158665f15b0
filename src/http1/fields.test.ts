import { expect, test } from 'bun:test';
import { Fields, incomplete, malformed, tooManyFields } from './fields.ts';

const fields = new Fields(300);

function parse(text: string, into = fields): number {
  const bytes = Buffer.from(text, 'latin1');
  return into.parse(bytes, 0, bytes.length);
}

test('fields are kept in their order, as they were written', () => {
  const text = 'Host: x\r\nX-A:a \t b \t\r\nx-b:\t\r\nHost:y\r\n\r\n';
  expect(parse(text)).toBe(text.length);
  expect(fields.all()).toEqual([
    { name: 'Host', value: 'x' },
    { name: 'X-A', value: 'a \t b' },
    { name: 'x-b', value: '' },
    { name: 'Host', value: 'y' },
  ]);
  expect([1, 3].map(index => text.slice(fields.lineStart(index), fields.lineEnd(index)))).toEqual([
    ...['X-A:a \t b \t\r\n', 'Host:y\r\n'],
  ]);
});

test('the first line of a header is its value, and all of them are one list', () => {
  parse('Accept: a\r\nX: y\r\nACCEPT: b, c\r\n\r\n');
  expect([fields.text('accept'), fields.list('accept'), fields.times('accept')]).toEqual(['a', 'a, b, c', 2]);
  expect([fields.indexOf('accept'), fields.has('accept')]).toEqual([0, true]);
  expect([fields.text('host'), fields.list('host'), fields.times('host')]).toEqual([undefined, undefined, 0]);
  expect([fields.indexOf('host'), fields.has('host')]).toEqual([-1, false]);
});

test('the next message has none of the last one’s', () => {
  parse('Accept: a\r\n\r\n');
  expect(parse('\r\n')).toBe(2);
  expect([fields.count, fields.has('accept'), fields.times('accept'), fields.all()]).toEqual([0, false, 0, []]);
});

test('a header that comes very often is not taken for one that came once', () => {
  parse(`${'Accept: a\r\n'.repeat(258)}\r\n`);
  expect([fields.count, fields.times('accept')]).toEqual([258, 255]);
});

test('what does not end within the bytes that are given is incomplete', () => {
  const text = 'Host: x\r\nX-A: \r\n\r\n';
  const bytes = Buffer.from(`${text}Y: z\r\n\r\n`);
  for (let end = 0; end < text.length; end++) expect([end, fields.parse(bytes, 0, end)]).toEqual([end, incomplete]);
  expect(fields.parse(bytes, 0, text.length)).toBe(text.length);
});

test.each([
  'A: b\0\n\r\n',
  'A: b\n\r\n',
  'A: b\rc\r\n',
  'A : b\r\n\r\n',
  ': b\r\n\r\n',
  '\rA',
  'A\r\n\r\n',
  ' a: b\r\n\r\n',
])('%j is no field', text => {
  expect(parse(text)).toBe(malformed);
  expect(parse(`Host: x\r\n${text}`)).toBe(malformed);
});

test('there is room for as many as were asked for', () => {
  const two = new Fields(2);
  expect([parse('A: b\r\nC: d\r\n\r\n', two), two.count]).toEqual([14, 2]);
  expect(parse('A: b\r\nC: d\r\nE: f\r\n\r\n', two)).toBe(tooManyFields);
});
