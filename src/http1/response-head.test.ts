import { expect, test } from 'bun:test';
import { incomplete, malformed } from './fields.ts';
import { ResponseHead } from './response-head.ts';

const head = new ResponseHead(32);

function parse(text: string): number {
  const bytes = Buffer.from(text, 'latin1');
  return head.parse(bytes, 0, bytes.length);
}

function framingOf(text: string, toHead = false) {
  expect(parse(text)).toBe(text.length);
  return head.framing(toHead);
}

test('reads status and version', () => {
  for (const [line, status, minor] of [
    ['HTTP/1.1 200 OK', 200, 1],
    ['HTTP/1.0 404 Not Found', 404, 0],
    ['HTTP/1.1 204', 204, 1],
    ['HTTP/1.1 299 ', 299, 1],
    ['HTTP/1.1 418 I\xe9', 418, 1],
  ] as const) {
    expect(parse(`${line}\r\n\r\n`)).toBe(line.length + 4);
    expect([head.status, head.minorVersion]).toEqual([status, minor]);
  }
});

test('every prefix is incomplete', () => {
  const text = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n';
  for (let end = 0; end < text.length; end++) expect(parse(text.slice(0, end))).toBe(incomplete);
});

test('refuses what is no response', () => {
  for (const text of [
    'SSH-2.0-OpenSSH\r\n\r\n',
    'HTTP/2 200 OK\r\n\r\n',
    'HTTP/1.1 20 OK\r\n\r\n',
    'HTTP/1.1 2000 OK\r\n\r\n',
    'HTTP/1.1 020 OK\r\n\r\n',
    'HTTP/1.1 2x0 OK\r\n\r\n',
    'HTTP/1.1 20x OK\r\n\r\n',
    'HTTP/1.1 x00 OK\r\n\r\n',
    'HTTP/1.1  200 OK\r\n\r\n',
    'HTTP/1.1 200 OK\n\n',
    'HTTP/1.1 200 OK\r\nA: b\n\r\n',
    'HTTP/1.1 200 OK\r\nA : b\r\n\r\n',
    'HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n',
    'HTTP/1.1 200 O\x00K\r\n\r\n',
  ]) {
    expect([text, parse(text)]).toEqual([text, malformed]);
  }
});

test('knows how a body ends', () => {
  expect(framingOf('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n')).toEqual({ kind: 'length', length: 5 });
  expect(framingOf('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')?.kind).toBe('none');
  expect(framingOf('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')?.kind).toBe('chunked');
  expect(framingOf('HTTP/1.1 200 OK\r\n\r\n')?.kind).toBe('close');
  expect(framingOf('HTTP/1.0 200 OK\r\n\r\n')?.kind).toBe('close');
  expect(framingOf('HTTP/1.1 204 No Content\r\n\r\n')?.kind).toBe('none');
  expect(framingOf('HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n')?.kind).toBe('none');
  expect(framingOf('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n', true)?.kind).toBe('none');
});

test('an ambiguous length is no length', () => {
  for (const fields of [
    'Content-Length: 5\r\nContent-Length: 6\r\n',
    'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n',
    'Content-Length: five\r\n',
    'Transfer-Encoding: gzip\r\n',
    'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n',
  ]) {
    expect([fields, framingOf(`HTTP/1.1 200 OK\r\n${fields}\r\n`)]).toEqual([fields, undefined]);
    expect(framingOf(`HTTP/1.1 200 OK\r\n${fields}\r\n`, true)).toBeUndefined();
  }
  expect(framingOf('HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')).toBeUndefined();
});
