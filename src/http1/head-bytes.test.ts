import { expect, test } from 'bun:test';
import { headBytes } from './head-bytes.ts';

test('a head is written as lines', () => {
  const bytes = headBytes('GET /\xe9 HTTP/1.1', [
    { name: 'Host', value: 'a' },
    { name: 'X', value: '' },
  ]);
  expect(bytes.toString('latin1')).toBe('GET /\xe9 HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n');
});

test('nothing can add a line or end one early', () => {
  expect(() => headBytes('GET / HTTP/1.1\r\nA: b', [])).toThrow('start line');
  for (const value of ['a\r\nB: c', 'a\nb', '\0', '€']) {
    expect(() => headBytes('GET / HTTP/1.1', [{ name: 'A', value }])).toThrow('header A');
  }
  for (const name of ['', 'A b', 'A:', 'A\r\n', 'é'])
    expect(() => headBytes('GET / HTTP/1.1', [{ name, value: 'a' }])).toThrow('no token');
});
