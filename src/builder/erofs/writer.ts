import { writeAll } from '../../base/write-all.ts';
import { createBlockOutput, type BlockOutput } from './block-output.ts';
import { blockSize, encodeSuperblock, inodeSize, xattrsSize } from './format.ts';
import { encodeData, encodeHead, planTree, rootSlot, type PlannedInode } from './plan.ts';
import type { ImageLimits } from '../../protocol/builder.ts';
import type { Attributes, DirectoryNode, FileData } from './tree.ts';

/** Writes one EROFS image: first the contents of files as they come, then the tree that names them. */
export type ImageWriter = {
  /** Takes the content of one file, in parts. Only one file at a time. */
  beginFile(attributes: Attributes): { write(part: Uint8Array): void; end(): FileData };
  /** Writes the tree and completes the image. Answers its size in bytes and its number of inodes. */
  finish(root: DirectoryNode): { bytes: number; inodes: number };
};

/**
 * Up to this length, a file's last bytes are stored behind its inode: one read for small files, and no half-empty
 * block.
 */
const inlineBytesMax = 2048;

/** Writes to `fd`, an empty file that can be written at any position. Errors: `no_space` beyond the limits. */
export function createImageWriter(fd: number, limits: ImageLimits): ImageWriter {
  const output = createBlockOutput(fd, limits.bytesMax);
  return {
    beginFile(attributes) {
      const firstBlock = output.block();
      const inlineMax = Math.min(inlineBytesMax, blockSize - inodeSize - xattrsSize(attributes.xattrs));
      let size = 0;
      return {
        write(part) {
          size += part.length;
          output.append(part);
        },
        end() {
          const rest = size % blockSize;
          const tail = rest <= inlineMax ? output.takeBack(rest) : new Uint8Array(0);
          output.pad();
          return { size, firstBlock, tail };
        },
      };
    },
    finish(root) {
      const plan = planTree(root, limits.inodesMax);
      for (const inode of plan) writeBlocks(inode, output);
      const metaBlock = output.block();
      writeMeta(plan, output);
      const blocks = output.block();
      output.flush();
      writeAll(fd, encodeSuperblock({ rootSlot, inodes: plan.length, blocks, metaBlock }), 0);
      return { bytes: blocks * blockSize, inodes: plan.length };
    },
  };
}

/** Writes the part of a directory or link that is not inline. File contents are already written. */
function writeBlocks(inode: PlannedInode, output: BlockOutput): void {
  if (inode.node.kind === 'file' || inode.size <= inode.inlineSize) return;
  inode.firstBlock = output.block();
  const blocks = encodeData(inode);
  for (const block of inode.inlineSize > 0 ? blocks.slice(0, -1) : blocks) {
    output.append(block);
    output.pad();
  }
}

function writeMeta(plan: PlannedInode[], output: BlockOutput): void {
  let position = 0;
  const put = (bytes: Uint8Array) => {
    output.append(bytes);
    position += bytes.length;
  };
  for (const inode of plan) {
    put(new Uint8Array(inode.offset - position));
    put(encodeHead(inode));
    if (inode.inlineSize === 0) continue;
    put(inode.node.kind === 'file' ? inode.node.data.tail : (encodeData(inode).at(-1) ?? new Uint8Array(0)));
  }
  output.pad();
}
