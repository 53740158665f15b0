import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { repository } from '../../support/platform.ts';
import { runToEnd, start, textOf, waitFor } from '../../support/process.ts';
import { setUp } from '../../upgrade/earlier.ts';
import { cacheDir } from './programs.ts';

const releaseTimeoutMs = 40 * 60_000;
const baseTimeoutMs = 15 * 60_000;

/** Makes a release of a checkout in `folder`: its image. */
async function release(checkout: string, folder: string): Promise<string> {
  const made = await runToEnd(['node', join(checkout, 'scripts/release.mjs'), folder], { timeoutMs: releaseTimeoutMs });
  if (made.exitCode !== 0) throw new Error(made.stderr);
  return join(folder, readdirSync(folder).find(entry => entry.endsWith('.oci.tar')) ?? '');
}

/** The image of this checkout: the file ATOLL_IMAGE, or one that is made now in `folder`. */
export async function imageOfThis(folder: string): Promise<string> {
  return process.env['ATOLL_IMAGE'] ?? release(repository, folder);
}

/**
 * Makes a version create its base template, so that this machine has it: machines of the laboratory reach no mirror.
 */
async function makeBase(atoll: string, dataDir: string): Promise<void> {
  const env = { ...process.env, ATOLL_DATA_DIR: dataDir, ATOLL_PORT: '0', ATOLL_TEMPLATES: 'none' };
  const platform = start([atoll, 'up', '--json'], { env });
  const said = textOf(platform, 'stdout');
  await waitFor(
    'the earlier version to serve',
    () => platform.exitCode !== null || said().includes('"url"'),
    baseTimeoutMs,
  );
  const { exitCode, stderr } = await runToEnd([atoll, 'down', '--all', '--yes'], { env });
  if (exitCode !== 0) throw new Error(stderr);
}

/** The image of an earlier commit of this checkout's history, made once, with what its base template is made of. */
export async function imageOf(commit: string): Promise<string> {
  const kept = join(cacheDir, `image-${commit}-with-base.oci.tar`);
  if (existsSync(kept)) return kept;
  const folder = mkdtempSync(join(cacheDir, 'image-'));
  try {
    const checkout = join(folder, 'checkout');
    await makeBase(await setUp(commit, checkout), join(folder, 'data'));
    renameSync(await release(checkout, join(folder, 'release')), kept);
    return kept;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
