import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { exclusively } from '../../scripts/setup/lock.mjs';
import { repository } from './platform.ts';
import { runToEnd } from './process.ts';

const clients = join(repository, 'test/support/python/requirements.txt');
const cacheDir = '/var/cache/atoll';
/** A busy machine takes minutes for the programs' frameworks. */
const installTimeoutMs = 15 * 60_000;
/** How often a download is tried, with growing pauses: a mirror may be unreachable for a minute. */
const downloadTries = 8;

/** For a test that needs the environment: it may be the first, and then waits for the downloads. */
export const pythonTimeoutMs = installTimeoutMs + 60_000;

/**
 * A Python with the published clients as requirements.txt pins them, or with what another such file pins, kept for
 * later runs; or why it is unavailable.
 */
export async function pythonWithSdk(requirements = clients): Promise<{ program: string } | { missing: string }> {
  const hash = new Bun.CryptoHasher('sha256')
    .update(await Bun.file(requirements).bytes())
    .digest('hex')
    .slice(0, 16);
  const { stdout, exitCode } = await runToEnd([
    'python3',
    '-c',
    'import sys; print(*sys.version_info[:2], sep=".")',
  ]).catch(() => ({ stdout: '', exitCode: 1 }));
  if (exitCode !== 0) return { missing: 'python3 is not installed' };
  const folder = join(cacheDir, `python-${stdout.trim()}-${hash}`);
  const program = join(folder, 'bin/python');
  await mkdir(cacheDir, { recursive: true, mode: 0o700 });
  // Suites that run in parallel want the same one.
  return await exclusively(`${folder}.lock`, () =>
    existsSync(program) ? { program } : makeEnvironment(folder, program, requirements),
  );
}

async function makeEnvironment(
  folder: string,
  program: string,
  requirements: string,
): Promise<{ program: string } | { missing: string }> {
  // An environment contains its own path, so it is made in place; a marker at the end says that it is complete.
  const unfinished = join(folder, 'bin/python3.unfinished');
  await rm(folder, { recursive: true, force: true });
  const made = await runToEnd(['python3', '-m', 'venv', '--copies', folder]);
  if (made.exitCode !== 0) return { missing: `python3 -m venv fails: ${made.stderr.trim().split('\n')[0] ?? ''}` };
  await rename(program, unfinished);
  const installed = await runToEnd(
    [
      join(folder, 'bin/python3'),
      ...['-m', 'pip', 'install', '--quiet', '--retries', `${downloadTries}`, '--requirement', requirements],
    ],
    { timeoutMs: installTimeoutMs },
  );
  if (installed.exitCode !== 0)
    return { missing: `pip can't install the SDK: ${installed.stderr.trim().split('\n').pop() ?? ''}` };
  await rename(unfinished, program);
  return { program };
}
