import { expect, test } from 'bun:test';
import { createHttpReader } from './agent-http.ts';
import { createMessageReader } from './agent-process.ts';

const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n';
const chunked = `${head}transfer-encoding: chunked\r\n\r\n`;

/** Reads an answer that comes in parts of `size` bytes. */
function read(answer: string | Buffer, size: number) {
  const parts: Buffer[] = [];
  const reader = createHttpReader(part => void parts.push(Buffer.from(part)));
  const bytes = Buffer.from(answer);
  for (let at = 0; at < bytes.length; at += size) reader.take(bytes.subarray(at, at + size));
  return { body: Buffer.concat(parts).toString(), status: reader.status(), isOver: reader.isOver(), failure: reader.failure() };
}

test.each([1, 2, 3, 7, 1000])('an answer is the same in parts of %d bytes', size => {
  expect(read(`${chunked}5\r\nhello\r\n1;ext=1\r\n!\r\n0\r\n\r\n`, size)).toEqual({ body: 'hello!', status: 200, isOver: true, failure: undefined });
  expect(read(`${head}content-length: 5\r\n\r\nhelloagain`, size)).toEqual({ body: 'hello', status: 200, isOver: true, failure: undefined });
  expect(read(`${head}\r\nhello`, size)).toEqual({ body: 'hello', status: 200, isOver: false, failure: undefined });
  expect(read('HTTP/1.1 204 No Content\r\n\r\n', size)).toMatchObject({ body: '', status: 204, isOver: true });
  expect(read('HTTP/1.1 401 Unauthorized\r\ncontent-length: 4\r\n\r\nnope', size)).toMatchObject({ body: '', isOver: true, failure: 'the agent answered 401: nope' });
});

test.each([
  ['no answer', 'SSH-2.0-OpenSSH\r\n\r\n'],
  ['an endless head', `HTTP/1.1 200 OK\r\n${'a: b\r\n'.repeat(4000)}`],
  ['a head without an end', 'x'.repeat(20_000)],
  ['a size that is none', `${chunked}zz\r\n`],
  ['a negative size', `${chunked}-1\r\n`],
  ['a size beyond all sizes', `${chunked}fffffffffff\r\n`],
  ['an endless size', `${chunked}${'0'.repeat(2000)}`],
  ['an endless extension', `${chunked}1;${'x'.repeat(2000)}`],
  ['a chunk that goes on', `${chunked}1\r\nab\r\n`],
])('%s is refused', (_, answer) => {
  for (const size of [1, 100_000]) expect(() => read(answer, size)).toThrow(/agent/);
});

test('what refuses says a bounded part of why', () => {
  expect(read(`HTTP/1.1 500 Oops\r\n\r\n${'x'.repeat(1 << 20)}`, 4096).failure?.length).toBeLessThan(600);
});

test('a message of the stream is the same in parts of any size, an empty one too', () => {
  const bytes = Buffer.concat([Buffer.from([0, 0, 0, 0, 3]), Buffer.from('abc'), Buffer.from([1, 0, 0, 0, 0]), Buffer.from([2, 0, 0, 0, 1]), Buffer.from('d')]);
  for (const size of [1, 2, 5, 8, 100]) {
    const seen: [number, string][] = [];
    const take = createMessageReader((flags, payload) => seen.push([flags, payload.toString()]));
    for (let at = 0; at < bytes.length; at += size) take(bytes.subarray(at, at + size));
    expect(seen).toEqual([[0, 'abc'], [1, ''], [2, 'd']]);
  }
  expect(() => createMessageReader(() => {})(Buffer.from([0, 1, 0, 0, 0]))).toThrow('too long');
});

test('half a million chunks of one byte are a matter of moments', () => {
  const count = 500_000;
  const messages: number[] = [];
  const reader = createHttpReader(createMessageReader((_, payload) => void messages.push(payload.length)));
  const envelope = Buffer.concat([Buffer.from([0, 0, count >> 16, (count >> 8) & 255, count & 255]), Buffer.alloc(count, 97)]);
  const answer = Buffer.from(chunked + [...envelope].map(byte => `1\r\n${String.fromCharCode(byte)}\r\n`).join(''), 'latin1');
  const began = process.cpuUsage();
  for (let at = 0; at < answer.length; at += 16_384) reader.take(answer.subarray(at, at + 16_384));
  expect(messages).toEqual([count]);
  // Joining the rest anew for each chunk took 10 s for 180,000, and would take more than a minute.
  expect(process.cpuUsage(began).user / 1e6).toBeLessThan(8);
});
