import { dirname } from 'node:path';
import { failedWriteCode } from '../../base/disk-room.ts';
import { AtollError } from '../../base/error.ts';
import { withoutPlaces } from '../../base/process/without-places.ts';
import type { Helper } from '../native/helper.ts';

/** Bytes of disk for each inode: a disk of 10 GiB holds 655,360 files. */
const bytesPerInode = 16_384;
const journalMiB = 4;
const formatTimeoutMs = 60_000;

/** Makes `image` a sparse ext4 file system of `sizeMiB` that holds a copy of the directory `tree`, owners included. */
export async function formatImage(
  helper: Helper,
  image: string,
  { sizeMiB, tree }: { sizeMiB: number; tree: string },
): Promise<void> {
  const options = 'lazy_itable_init=1,lazy_journal_init=1,nodiscard,root_owner=0:0';
  const format = [
    'mkfs.ext4',
    '-q',
    '-F',
    '-b',
    '4096',
    '-m',
    '0',
    '-O',
    '^resize_inode',
    '-i',
    `${bytesPerInode}`,
    '-J',
    `size=${journalMiB}`,
    '-E',
    options,
    '-d',
    tree,
  ];
  const { status, output } = await helper.spawn([...format, image, `${sizeMiB}M`], { timeoutMs: formatTimeoutMs });
  if (status !== 0) throw new AtollError(failedWriteCode(dirname(image)), `mkfs.ext4 failed: ${withoutPlaces(output)}`);
}
