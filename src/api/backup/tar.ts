import { closeSync, openSync, readdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { failedWriteCode } from '../../base/disk-room.ts';
import { AtollError } from '../../base/error.ts';

/** GNU tar's exit code for files that changed while they were read, as volumes in use do. */
const changedWhileRead = 1;

/**
 * Packs `paths` of a directory into a file that only root can read; holes stay holes. With `live`, they may change
 * meanwhile. Errors: `no_space`; `invalid` for anything else that tar could not do.
 */
export async function pack(
  directory: string,
  file: string,
  { paths = ['.'], live = false, signal }: { paths?: string[]; live?: boolean; signal?: AbortSignal | undefined } = {},
): Promise<void> {
  closeSync(openSync(file, 'w', 0o600));
  const failure = await run(
    [
      'tar',
      '--create',
      '--sparse',
      '--xattrs',
      '--numeric-owner',
      '--file',
      file,
      '--directory',
      directory,
      '--',
      ...paths,
    ],
    live ? [0, changedWhileRead] : [0],
    signal,
  );
  if (failure === null) return;
  if (failedWriteCode(dirname(file)) === 'no_space')
    throw new AtollError(
      'no_space',
      `There is no room for the backup on the disk of ${dirname(file)}: make room, or name a file on another one.`,
    );
  throw new AtollError('invalid', `tar failed: ${failure}`);
}

/**
 * Unpacks into an existing directory. Errors: `invalid` for a file that is not a complete archive, and for entries that
 * are neither files nor directories; `no_space`.
 */
export async function unpackInto(directory: string, file: string, signal?: AbortSignal): Promise<void> {
  const failure = await run(
    [
      'tar',
      '--extract',
      '--xattrs',
      '--numeric-owner',
      '--same-owner',
      '--same-permissions',
      '--file',
      file,
      '--directory',
      directory,
    ],
    [0],
    signal,
  );
  if (failure !== null) {
    const isFull = failedWriteCode(directory) === 'no_space';
    const what = isFull ? 'There is no room for the backup' : 'The backup is damaged';
    throw new AtollError(isFull ? 'no_space' : 'invalid', `${what}: ${failure}. Nothing was restored.`);
  }
  const other = readdirSync(directory, { recursive: true, withFileTypes: true }).find(
    entry => !entry.isFile() && !entry.isDirectory(),
  );
  if (other)
    throw new AtollError(
      'invalid',
      `The backup is damaged: ${other.name} is neither a file nor a directory. Nothing was restored.`,
    );
}

/** Answers the first line of tar's failure; null where it succeeded. Throws the signal's reason once tar has ended. */
async function run(argv: string[], accepted: number[], signal: AbortSignal | undefined): Promise<string | null> {
  signal?.throwIfAborted();
  const child = Bun.spawn(argv, {
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'pipe',
    // Ctrl-C signals all processes of a terminal, but this one must decide when tar ends.
    detached: true,
    ...(signal && { signal }),
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' },
  });
  const [text, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  signal?.throwIfAborted();
  if (accepted.includes(code)) return null;
  const [line = ''] = text.replace(/^tar: /, '').split('\n');
  return line.slice(0, 1000) || `tar ended with status ${code}`;
}
