import { mkdir, stat } from 'node:fs/promises';
import { AtollError } from '../../../base/error.ts';
import { runCommand } from '../../../base/process/command.ts';
import { toolEnvironment } from './debian-tree.ts';

const extractTimeoutMs = 30 * 60_000;

/**
 * Extracts an archive of a root filesystem (tar; plain or compressed by gzip, xz, bzip2 or zstd) to `treeDir`. Nothing
 * lands outside of it: GNU tar strips leading slashes and refuses `..`, creates links that point out of the tree only
 * after everything else, and runs without `--absolute-names`. Device nodes are left out: a sandbox gets its own.
 * Errors: `not_found` when the archive is missing, `internal` with tar's words when it is broken.
 */
export async function extractArchiveTree(archive: string, treeDir: string, signal?: AbortSignal): Promise<void> {
  const found = await stat(archive).catch(() => undefined);
  if (!found?.isFile()) {
    throw new AtollError(
      'not_found',
      `The base image ${archive} is not a file. Set ATOLL_BASE_IMAGE to an archive of a root filesystem.`,
    );
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
}
