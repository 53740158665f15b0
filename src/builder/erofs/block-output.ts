import { AtollError } from '../../base/error.ts';
import { writeAll } from '../../base/write-all.ts';
import { blockSize, roundUp } from './format.ts';

/** Appends to an image in large writes, counting blocks. The first block stays free for the superblock. */
export type BlockOutput = {
  append(bytes: Uint8Array): void;
  /** Appends zeros up to the next block's beginning. */
  pad(): void;
  /** The number of the block that the next byte goes to. Call it only at a block's beginning. */
  block(): number;
  /** Removes the last `count` bytes again; at most those of the last, unfinished block. */
  takeBack(count: number): Uint8Array;
  flush(): void;
};

const bufferSize = 1 << 20;

/** Writes behind the first block of a file, which is left for the superblock. Errors: `no_space` beyond `bytesMax`. */
export function createBlockOutput(fd: number, bytesMax: number): BlockOutput {
  const buffer = Buffer.alloc(bufferSize);
  let used = 0;
  let flushed = blockSize;
  const flush = () => {
    writeAll(fd, buffer.subarray(0, used), flushed);
    flushed += used;
    used = 0;
  };
  const append = (bytes: Uint8Array) => {
    if (flushed + used + bytes.length > bytesMax)
      throw new AtollError('no_space', `the layer is larger than ${Math.floor(bytesMax / 1024 / 1024)} MiB`);
    for (let rest = bytes; rest.length > 0;) {
      // Only full buffers, which hold whole blocks, are written: so the unfinished block can be taken back.
      if (used === bufferSize) flush();
      const part = rest.subarray(0, bufferSize - used);
      buffer.set(part, used);
      used += part.length;
      rest = rest.subarray(part.length);
    }
  };
  return {
    append,
    flush,
    block: () => (flushed + used) / blockSize,
    pad: () => append(new Uint8Array(roundUp(used, blockSize) - used)),
    takeBack(count) {
      used -= count;
      return Uint8Array.prototype.slice.call(buffer, used, used + count);
    },
  };
}
