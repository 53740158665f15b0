import { expect, test } from 'bun:test';
import { Greeting, isPreface } from './greeting.ts';

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

test('the preface is told at its last octet, and what is none at its first that differs', () => {
  for (let length = 1; length < preface.length; length++)
    expect(isPreface(preface.subarray(0, length))).toBeUndefined();
  expect(isPreface(preface)).toBe(true);
  expect(isPreface(Buffer.concat([preface, Buffer.from('more')]))).toBe(true);
  for (const other of ['GET /', 'POST', 'PROPFIND /', 'PRI * HTTP/1.1', 'PRI * HTTP/2.0\r\n\r\nSN'])
    expect(isPreface(Buffer.from(other))).toBe(false);
});

test('what comes in pieces is handed on whole, once it is decided', () => {
  const user = { received() {}, drained() {}, halfClosed: () => void ended++, wasClosed() {} };
  let ended = 0;
  const decided: [string, boolean][] = [];
  const begin = () =>
    new Greeting(user, Buffer.from('PR'), (bytes, isHttp2) => decided.push([bytes.toString(), isHttp2]));
  const other = begin();
  other.received(Buffer.from('OPFIND'));
  const same = begin();
  for (const byte of preface.subarray(2)) same.received(Buffer.from([byte]));
  begin().halfClosed();
  expect(decided).toEqual([
    ['PROPFIND', false],
    [preface.toString(), true],
    ['PR', false],
  ]);
  expect(ended).toBe(1);
});
