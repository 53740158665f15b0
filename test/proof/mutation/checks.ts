import { readdirSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bunPath } from '../../../scripts/setup/npm-packages.mjs';
import { runToEnd } from '../../support/process.ts';
import { isTest, sourceFiles } from '../../tidy/source-files.ts';

/** A test file, and how to run it by itself in a checkout. */
export type Check = {
  /** Relative to the checkout. */
  file: string;
  argv(root: string): string[];
  /** Whether it runs what set-up builds, not only the sources. */
  isOfBuilt: boolean;
};

/** Folders of `test` that say nothing about `src`, or take too long to run for each fault. */
const notAsked = new Set(['tidy', 'docs', 'helm', 'hosts', 'native', 'setup', 'proof', 'support', 'client']);
const long = new Set(
  'cluster-long dashboard-long dashboard-scale image kubernetes programs simulation-long templates upgrade'.split(' '),
);
/** Folders whose tests run sources only, in their own process. */
const ofSources = new Set(['api', 'wire', 'fuzz', 'simulation', 'edge', 'store']);

/** All test files that are run for faults. */
export function allChecks(root: string): Check[] {
  const unit = sourceFiles(['src']).filter(({ path }) => isTest(path));
  const folders = readdirSync(join(root, 'test')).filter(name => !notAsked.has(name) && !long.has(name));
  const suites = sourceFiles(folders.map(name => join('test', name))).filter(({ path }) => isTest(path));
  return [...unit, ...suites].map(({ path }) => checkOf(path));
}

function checkOf(file: string): Check {
  const isOfBuilt = !file.startsWith('src/') && !ofSources.has(file.split('/')[1] ?? '');
  if (file.endsWith('.test.ts'))
    return { file, isOfBuilt, argv: root => [bunPath(root), 'test', '--bail', '--timeout=60000', `./${file}`] };
  return {
    file,
    isOfBuilt,
    argv: () => ['node', '--import', 'tsx', '--test-reporter=spec', 'scripts/test/together.mjs', file],
  };
}

/** Longest run of one test file, ms. */
const timeoutMaxMs = 8 * 60_000;

/**
 * Whether a test file passes in a checkout. It runs in its own namespaces, with its own folder for temporary files:
 * leftovers of a fault end with them, and two files do not meet. A file that usually takes some seconds counts as hung
 * after ten times that plus a minute.
 */
export async function passes(root: string, check: Check, usualSeconds = Infinity): Promise<boolean> {
  const inside = ['sh', '-c', 'ip link set lo up && exec "$@"', 'sh', ...check.argv(root)];
  const argv = ['unshare', '--pid', '--mount', '--net', '--fork', '--kill-child', '--mount-proc', ...inside];
  const timeoutMs = Math.min(timeoutMaxMs, usualSeconds * 10_000 + 60_000);
  // Short, because names of sockets are limited. An installation's number is free once its folder is gone.
  const temporary = await mkdtemp(join(tmpdir(), 'm-'));
  await chmod(temporary, 0o755);
  try {
    const env = { ...process.env, CI: 'true', TMPDIR: temporary };
    return (await runToEnd(argv, { cwd: root, timeoutMs, env })).exitCode === 0;
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}
