import { expect, test } from 'bun:test';
import { beginsHttp2 } from './first-frame.ts';

test('the first frame of a server of HTTP/2 is told from every answer of HTTP/1.1', () => {
  const http2 = [
    [0, 0, 0, 4, 0, 0, 0, 0, 0],
    [0, 0, 18, 4, 0],
    [0, 0, 8, 7, 0],
    // Not all of it is there yet.
    [0],
    [0, 0, 6],
  ];
  for (const bytes of http2) expect(beginsHttp2(Uint8Array.from(bytes))).toBe(true);
  for (const text of ['HTTP/1.1 200 OK', 'H', '', '\x15\x03\x01', '\0\0\0\0'])
    expect(beginsHttp2(Buffer.from(text, 'latin1'))).toBe(false);
});
