import { closeSync, openSync, readdirSync } from 'node:fs';
import { AtollError } from '../../base/error.ts';

/** GNU tar's exit code for files that changed while they were read, which volumes in use do. */
const changedWhileRead = 1;

/**
 * Packs `paths` of a directory into a file for root alone; holes stay holes. With `live`, they may change meanwhile.
 */
export async function pack(
  directory: string,
  file: string,
  { paths = ['.'], live = false }: { paths?: string[]; live?: boolean } = {},
): Promise<void> {
  closeSync(openSync(file, 'w', 0o600));
  await run(
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
  );
}

/**
 * Unpacks into an existing directory. Errors: `invalid` for a file that is no archive or half of one, and for entries
 * that are neither files nor directories; `no_space`.
 */
export async function unpackInto(directory: string, file: string): Promise<void> {
  await run(
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
  ).catch((error: unknown) => {
    if (!(error instanceof AtollError)) throw error;
    const [reason = ''] = error.message.replace(/^tar failed: (tar: )?/, '').split('\n');
    if (error.message.includes('No space left on device'))
      throw new AtollError('no_space', `There is no room for the backup: ${reason}. Nothing was restored.`, {
        cause: error,
      });
    throw new AtollError('invalid', `The backup is damaged: ${reason}. Nothing was restored.`, { cause: error });
  });
  const other = readdirSync(directory, { recursive: true, withFileTypes: true }).find(
    entry => !entry.isFile() && !entry.isDirectory(),
  );
  if (other)
    throw new AtollError(
      'invalid',
      `The backup is damaged: ${other.name} is neither a file nor a directory. Nothing was restored.`,
    );
}

async function run(argv: string[], accepted: number[]): Promise<void> {
  const child = Bun.spawn(argv, {
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'pipe',
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' },
  });
  const [text, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  if (!accepted.includes(code)) throw new AtollError('invalid', `${argv[0]} failed: ${text.trim().slice(0, 1000)}`);
}
