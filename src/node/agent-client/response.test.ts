import { expect, test } from 'bun:test';
import { createMessageReader } from '../../base/envelopes.ts';
import { createResponseReader } from './response.ts';

const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n';
const chunked = `${head}transfer-encoding: chunked\r\n\r\n`;

/** Reads an answer that arrives in parts of `size` bytes and whose connection then ends. */
function read(answer: string, size: number) {
  let body = '';
  const reader = createResponseReader(piece => {
    body += Buffer.from(piece).toString();
    return body.includes('stop') ? 'enough' : 'more';
  });
  let isOver = false;
  for (let at = 0; at < answer.length && !isOver; at += size)
    isOver = reader.take(Buffer.from(answer.slice(at, at + size)));
  return { body, isOver, ...reader.outcome(isOver) };
}

test.each([1, 2, 3, 7, 1000])('an answer is the same in parts of %d bytes', size => {
  const whole = { status: 200, isWhole: true, refusal: undefined };
  expect(read(`${chunked}5\r\nhello\r\n1;ext=1\r\n!\r\n0\r\n\r\n`, size)).toEqual({
    ...whole,
    body: 'hello!',
    isOver: true,
  });
  expect(read(`${head}\r\nhello`, size)).toEqual({ ...whole, body: 'hello', isOver: false });
  expect(read(`${head}content-length: 9\r\n\r\nhello`, size)).toMatchObject({ isOver: false, isWhole: false });
  expect(read(`${head}content-length: 90\r\n\r\nit may stop`, size)).toMatchObject({ isOver: true });
  expect(read('HTTP/1.1 204 No Content\r\n\r\n', size)).toMatchObject({ body: '', status: 204, isOver: true });
  expect(read('HTTP/1.1 401 Unauthorized\r\ncontent-length: 4\r\n\r\nnope', size)).toMatchObject({
    body: '',
    isOver: true,
    refusal: 'the agent answered 401: nope',
  });
  expect(read('HTTP/1.1 200', size)).toEqual({
    body: '',
    isOver: false,
    status: undefined,
    isWhole: false,
    refusal: undefined,
  });
});

test.each([
  ['no answer', 'SSH-2.0-OpenSSH\r\n\r\n'],
  ['an endless head', `HTTP/1.1 200 OK\r\n${'a: b\r\n'.repeat(4000)}`],
  ['a head without an end', `HTTP/1.1 200 ${'x'.repeat(20_000)}`],
  ['a size that is none', `${chunked}zz\r\n`],
  ['a size in another notation', `${chunked}0x10\r\n`],
  ['a size with a letter behind it', `${chunked}1g\r\n`],
  ['a negative size', `${chunked}-1\r\n`],
  ['a size beyond all sizes', `${chunked}fffffffffffffff\r\n`],
  ['an endless size', `${chunked}${'0'.repeat(2000)}`],
  ['an endless extension', `${chunked}1;${'x'.repeat(20_000)}`],
  ['a chunk that goes on', `${chunked}1\r\nab\r\n`],
  ['a length beside chunks', `${head}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n`],
])('%s is refused', (_, answer) => {
  for (const size of [1, 100_000]) expect(() => read(answer, size)).toThrow('did not answer in valid HTTP/1.1');
});

test('a refusal shows a bounded part of its reason', () => {
  expect(read(`HTTP/1.1 500 Oops\r\n\r\n${'x'.repeat(1 << 20)}`, 4096).refusal?.length).toBeLessThan(600);
});

test('no more of a refusal is read than is reported', () => {
  const reader = createResponseReader(() => 'more');
  expect(reader.take(Buffer.from(`HTTP/1.1 500 Oops\r\n\r\n${'x'.repeat(499)}`))).toBe(false);
  expect(reader.take(Buffer.from('xy'))).toBe(true);
});

test('half a million chunks of one byte are a matter of moments', () => {
  const count = 500_000;
  const messages: number[] = [];
  const read = createMessageReader((_, payload) => void messages.push(payload.length));
  const reader = createResponseReader(piece => (read(piece), 'more'));
  const prefix = Buffer.from([0, 0, count >> 16, (count >> 8) & 255, count & 255]);
  const envelope = Buffer.concat([prefix, Buffer.alloc(count, 97)]);
  const chunks = [...envelope].map(byte => `1\r\n${String.fromCharCode(byte)}\r\n`).join('');
  const answer = Buffer.from(chunked + chunks, 'latin1');
  const began = process.cpuUsage();
  for (let at = 0; at < answer.length; at += 16_384) reader.take(answer.subarray(at, at + 16_384));
  expect(messages).toEqual([count]);
  // Joining the rest anew for each chunk took 10 s for 180,000, and would take more than a minute.
  expect(process.cpuUsage(began).user / 1e6).toBeLessThan(8);
});
