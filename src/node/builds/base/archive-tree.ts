import { lstat, mkdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { AtollError } from '../../../base/error.ts';
import { toolEnvironment } from './debian-tree.ts';
import { runCommand } from './run-command.ts';

const extractTimeoutMs = 30 * 60_000;

/**
 * Extracts an archive of a root filesystem (tar; plain or compressed by gzip, xz, bzip2 or zstd) to `treeDir`.
 * Nothing lands outside of it: GNU tar strips leading slashes and refuses `..`, creates links that point out of the
 * tree only after everything else, and runs without `--absolute-names`. Device nodes are left out: a sandbox gets its own.
 * Errors: `not_found` when the archive is missing, `internal` with tar's words when it is broken.
 */
export async function extractArchiveTree(archive: string, treeDir: string, signal?: AbortSignal): Promise<void> {
  const found = await stat(archive).catch(() => undefined);
  if (!found?.isFile()) {
    throw new AtollError('not_found', `The base image ${archive} is not a file. Set ATOLL_BASE_IMAGE to an archive of a root filesystem.`);
  }
  await mkdir(treeDir, { mode: 0o755 });
  await runCommand(
    [
      'tar',
      '--extract',
      `--file=${archive}`,
      `--directory=${treeDir}`,
      '--numeric-owner',
      '--same-owner',
      '--same-permissions',
      '--xattrs',
      '--xattrs-include=security.capability',
      '--xattrs-include=user.*',
      // A colon in the file name would make tar look for another machine.
      '--force-local',
      '--exclude=./dev/*',
      '--exclude=dev/*',
    ],
    { env: toolEnvironment, timeoutMs: extractTimeoutMs, signal },
  );
  await requireUser(treeDir);
}

/** Clients run their commands as `user` unless they say otherwise: an image without it would fail at the first command. */
async function requireUser(treeDir: string): Promise<void> {
  let users = '';
  // No part of the path may be a link: the image's links mean its own root, ours would follow them into the host's.
  if ((await isReal(join(treeDir, 'etc'), 'directory')) && (await isReal(join(treeDir, 'etc/passwd'), 'file'))) {
    users = await readFile(join(treeDir, 'etc/passwd'), 'utf8');
  }
  if (!/^user:/m.test(users)) {
    throw new AtollError('invalid', 'The base image has no user named `user` in its /etc/passwd. Add one, with home /home/user, and make the archive again.');
  }
}

async function isReal(path: string, kind: 'directory' | 'file'): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined);
  return kind === 'file' ? found?.isFile() === true : found?.isDirectory() === true;
}
