import { Readable } from 'node:stream';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { AtollError, messageOf } from '../../base/error.ts';

const gzipMagic = [0x1f, 0x8b];
const zstdMagic = [0x28, 0xb5, 0x2f, 0xfd];

/** The content of a stream that may be compressed with gzip or zstd, judged by its first bytes. Errors: `invalid`. */
export async function* decompress(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const iterator = source[Symbol.asyncIterator]();
  let head: Uint8Array = new Uint8Array(0);
  while (head.length < zstdMagic.length) {
    const next = await iterator.next();
    if (next.done) break;
    head = head.length === 0 ? next.value : Buffer.concat([head, next.value]);
  }
  const whole = async function* () {
    yield head;
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) yield next.value;
  };
  const startsWith = (magic: number[]) => magic.every((byte, index) => head[index] === byte);
  const decompressor = startsWith(gzipMagic)
    ? createGunzip()
    : startsWith(zstdMagic)
      ? createZstdDecompress()
      : undefined;
  if (!decompressor) return yield* whole();
  const input = Readable.from(whole());
  input.on('error', error => decompressor.destroy(error));
  input.pipe(decompressor);
  try {
    yield* decompressor as AsyncIterable<Uint8Array>;
  } catch (error) {
    throw error instanceof AtollError
      ? error
      : new AtollError('invalid', `the archive can't be decompressed: ${messageOf(error)}`);
  }
}
