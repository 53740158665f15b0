import { dirname } from 'node:path';
import { failedWriteCode } from '../../base/disk-room.ts';
import { AtollError } from '../../base/error.ts';
import { withoutPlaces } from '../../base/process/without-places.ts';
import type { Helper } from '../native/helper.ts';
import type { ProgramKind } from '../native/program-places.ts';

/** Enough time to copy a disk of the largest size to a slow disk. */
const copyTimeoutMs = 10 * 60_000;

/**
 * Copies the image of a disk with its holes; shares blocks where the file system can. `what` is for the error. Errors:
 * `no_space`, `internal`.
 */
export async function copyImage(
  helper: Pick<Helper, 'spawn'>,
  { from, to, what, kind = 'long' }: { from: string; to: string; what: string; kind?: ProgramKind },
): Promise<void> {
  const { status, output } = await helper.spawn(['cp', '--reflink=auto', '--sparse=auto', from, to], {
    timeoutMs: copyTimeoutMs,
    kind,
  });
  if (status !== 0)
    throw new AtollError(failedWriteCode(dirname(to)), `${what} can't be copied: ${withoutPlaces(output)}`);
}
