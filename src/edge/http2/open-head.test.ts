import { expect, test } from 'bun:test';
import { OpenHead } from './open-head.ts';

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
const frame = (type: number, flags: number, length: number) =>
  Buffer.concat([Buffer.from([0, length >> 8, length & 255, type, flags, 0, 0, 0, 1]), Buffer.alloc(length)]);

test('only heads that are not whole count, however they are cut', () => {
  const whole = [frame(4, 0, 0), frame(1, 4, 500), frame(0, 0, 700)];
  const open = [frame(1, 0, 300), frame(9, 0, 20)];
  for (const size of [1, 9, 24, 400, 4000]) {
    const head = new OpenHead();
    const take = (...frames: Buffer[]) => {
      const all = Buffer.concat(frames);
      for (let at = 0; at < all.length; at += size) head.take(all.subarray(at, at + size));
      return head.bytes;
    };
    expect([size, take(preface, ...whole), take(...open), take(frame(9, 4, 0))]).toEqual([size, 0, 320, 0]);
  }
});
