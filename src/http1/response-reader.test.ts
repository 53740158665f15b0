import { expect, test } from 'bun:test';
import { ResponseReader } from './response-reader.ts';

const limits = { headBytesMax: 1000, fieldsMax: 10, interimsMax: 2 };

/** Reads a response in pieces of `size` bytes; each piece is overwritten after the call. */
function read(text: string, size: number, toHead = false) {
  const seen = { status: 0, interims: 0, body: '', ends: 0, fault: undefined as string | undefined };
  const reader = new ResponseReader(
    {
      interim: () => seen.interims++,
      head: head => void (seen.status = head.status),
      data: bytes => void (seen.body += Buffer.from(bytes).toString('latin1')),
      end: () => seen.ends++,
    },
    limits,
    toHead ? 'head' : 'content',
  );
  for (let at = 0; at < text.length; at += size) {
    const piece = Buffer.from(text.slice(at, at + size), 'latin1');
    seen.fault ??= reader.read(piece);
    piece.fill(0);
  }
  const whole = seen.fault === undefined && reader.close();
  return { ...seen, whole };
}

const ok = 'HTTP/1.1 200 OK\r\n';

test.each([1, 2, 3, 7, 1000])('a response is the same in pieces of %d bytes', size => {
  const whole = { status: 200, interims: 0, ends: 1, fault: undefined, whole: true };
  expect(read(`${ok}content-length: 5\r\n\r\nhelloagain`, size)).toEqual({ ...whole, body: 'hello' });
  expect(read(`${ok}transfer-encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n1\r\n!\r\n0\r\n\r\n`, size)).toEqual({
    ...whole,
    body: 'hello!',
  });
  expect(read(`HTTP/1.1 103 Hints\r\nA: b\r\n\r\n${ok}content-length: 0\r\n\r\n`, size)).toEqual({
    ...whole,
    interims: 1,
    body: '',
  });
  expect(read(`${ok}\r\nto the end`, size)).toEqual({ ...whole, body: 'to the end' });
  expect(read(`${ok}content-length: 5\r\n\r\nhel`, size)).toEqual({ ...whole, ends: 0, body: 'hel', whole: false });
});

test('a response to a HEAD has no body, whatever its length says', () => {
  expect(read(`${ok}content-length: 5\r\n\r\n`, 9, true)).toMatchObject({ ends: 1, body: '' });
});

test.each([
  ['another protocol', 'SSH-2.0-OpenSSH\r\n\r\n', 'HTTP'],
  ['an endless head', `${ok}A: ${'a'.repeat(1000)}`, 'too long'],
  ['an endless list of fields', `${ok}${'a: b\r\n'.repeat(20)}\r\n`, 'too many header lines'],
  ['two lengths', `${ok}content-length: 5\r\ncontent-length: 5\r\n\r\nhello`, 'ambiguous'],
  ['a length and chunks', `${ok}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\nhello`, 'ambiguous'],
  ['endless interim responses', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(3), 'too many interim'],
  ['a size that parsers read differently', `${ok}transfer-encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n`, 'chunk'],
  ['a size with a letter behind it', `${ok}transfer-encoding: chunked\r\n\r\n1g\r\na\r\n0\r\n\r\n`, 'chunk'],
])('%s is no response', (_, text, fault) => {
  for (const size of [1, 100_000]) {
    expect(read(text, size).fault).toContain(fault);
    expect(read(text, size)).toMatchObject({ ends: 0, whole: false });
  }
});
