import { AtollError } from '../../base/error.ts';

/** GNU tar's exit code for files that changed while they were read, which volumes in use do. */
const changedWhileRead = 1;

/** Packs a directory; holes of files stay holes. With `live`, its files may change meanwhile. */
export async function packDirectory(directory: string, file: string, live = false): Promise<void> {
  await run(['tar', '--create', '--sparse', '--xattrs', '--numeric-owner', '--file', file, '--directory', directory, '.'], live ? [0, changedWhileRead] : [0]);
}

/** Unpacks into a directory that is there. Throws `invalid` for what is no archive, or half of one. */
export async function unpackInto(directory: string, file: string): Promise<void> {
  await run(['tar', '--extract', '--xattrs', '--numeric-owner', '--same-owner', '--same-permissions', '--file', file, '--directory', directory], [0]);
}

/** Copies a file with its holes; shares its blocks where the file system can. */
export async function copySparse(from: string, to: string): Promise<void> {
  await run(['cp', '--reflink=auto', '--sparse=always', '--', from, to], [0]);
}

async function run(argv: string[], accepted: number[]): Promise<void> {
  const child = Bun.spawn(argv, { stdin: 'ignore', stdout: 'ignore', stderr: 'pipe', env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' } });
  const [text, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  if (!accepted.includes(code)) throw new AtollError('invalid', `${argv[0]} failed: ${text.trim().slice(0, 1000)}`);
}
