import { expect, test } from 'bun:test';
import { BodyBytes } from './body-bytes.ts';

const frame = (type: number, length: number) =>
  Buffer.concat([Buffer.from([0, length >> 8, length & 255, type, 0, 0, 0, 0, 1]), Buffer.alloc(length)]);

test('the bytes of bodies are counted, and those of other frames are not, however they are cut', () => {
  const all = Buffer.concat([frame(4, 18), frame(0, 300), frame(1, 40), frame(0, 0), frame(3, 4), frame(0, 7)]);
  for (const size of [1, 2, 8, 9, 10, 300, all.length]) {
    const counted = new BodyBytes();
    for (let at = 0; at < all.length; at += size) counted.take(all.subarray(at, at + size));
    expect([size, counted.total]).toEqual([size, 307]);
  }
});
