import { randomBytes } from 'node:crypto';
import { expect, test } from 'bun:test';
import { openFrames, sealedBytes, sealFrames } from './frames.ts';

const mib = 1 << 20;

async function all(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of source) parts.push(part);
  return Buffer.concat(parts);
}
async function* stream(bytes: Uint8Array, piece = 100_000) {
  for (let at = 0; at < bytes.length; at += piece) yield bytes.subarray(at, at + piece);
}

test('a stream of any length comes back the same, and is as long as predicted', async () => {
  for (const length of [0, 1, mib - 1, mib, mib + 1, 3 * mib]) {
    const key = randomBytes(32);
    const plain = randomBytes(length);
    const sealed = await all(sealFrames(key, stream(plain)));
    expect(sealed.length).toBe(sealedBytes(length));
    expect(length > 16 && sealed.includes(plain.subarray(0, 16))).toBe(false);
    expect((await all(openFrames(key, stream(sealed)))).equals(plain)).toBe(true);
  }
});

test('a stream that was changed, cut short or encrypted with another key is refused', async () => {
  const key = randomBytes(32);
  const sealed = await all(sealFrames(key, stream(randomBytes(2 * mib + 5))));
  const frame = mib + 16;
  const flipped = Buffer.from(sealed);
  flipped[frame + 7] = (flipped[frame + 7] ?? 0) ^ 1;
  const swapped = Buffer.concat([
    sealed.subarray(frame, 2 * frame),
    sealed.subarray(0, frame),
    sealed.subarray(2 * frame),
  ]);
  for (const wrong of [flipped, swapped, sealed.subarray(0, 2 * frame), sealed.subarray(0, -1), Buffer.alloc(0)])
    await expect(all(openFrames(key, stream(wrong)))).rejects.toThrow();
  await expect(all(openFrames(randomBytes(32), stream(sealed)))).rejects.toThrow();
});
