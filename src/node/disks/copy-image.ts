import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { failedWriteCode } from '../../base/disk-room.ts';
import { AtollError } from '../../base/error.ts';
import { withoutPlaces } from '../../base/process/without-places.ts';
import { allocatedBytes } from './allocated-bytes.ts';
import type { Helper } from '../native/helper.ts';
import type { ProgramKind } from '../native/program-places.ts';

/** Enough time to copy a disk of the largest size to a slow disk. */
const copyTimeoutMs = 10 * 60_000;

/** What the helper copies itself: in a few milliseconds, and to start a program would take longer. */
const smallBytes = 4 << 20;

/**
 * Copies the image of a disk with its holes; shares blocks where the file system can. `what` is for the error. Errors:
 * `no_space`, `internal`.
 */
export async function copyImage(
  helper: Pick<Helper, 'spawn' | 'call'>,
  { from, to, what, kind = 'long' }: { from: string; to: string; what: string; kind?: ProgramKind },
): Promise<void> {
  if (existsSync(from) && allocatedBytes(from) <= smallBytes && (await copiesItself(helper, from, to))) return;
  const { status, output } = await helper.spawn(['cp', '--reflink=auto', '--sparse=auto', from, to], {
    timeoutMs: copyTimeoutMs,
    kind,
  });
  if (status !== 0)
    throw new AtollError(failedWriteCode(dirname(to)), `${what} can't be copied: ${withoutPlaces(output)}`);
}

/** False if the helper could not copy it: cp(1) can do more, and says why if it can't. */
const copiesItself = (helper: Pick<Helper, 'call'>, from: string, to: string): Promise<boolean> =>
  helper.call('disk-create', { from, to }).then(
    () => true,
    () => false,
  );
