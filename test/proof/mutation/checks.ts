import { readdirSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bunPath } from '../../../scripts/setup/npm-packages.mjs';
import { runToEnd } from '../../support/process.ts';
import { isTest, sourceFiles } from '../../tidy/source-files.ts';

/** A test file, and how it is run by itself in a checkout. */
export type Check = {
  /** Relative to the checkout. */
  file: string;
  argv(root: string): string[];
  /** Whether it runs what set-up builds, and not the sources alone. */
  isOfBuilt: boolean;
};

/** Folders of `test` that say nothing of what `src` does, or take too long to be asked for each fault. */
const notAsked = new Set(['tidy', 'docs', 'helm', 'hosts', 'native', 'setup', 'proof', 'support', 'client']);
const long = new Set(
  'cluster-long dashboard-long dashboard-scale image kubernetes programs simulation-long templates upgrade'.split(' '),
);
/** Folders whose tests run sources only, in their own process. */
const ofSources = new Set(['api', 'wire', 'fuzz', 'simulation', 'edge', 'store']);

/** All test files that are asked about faults. */
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
 * Whether a test file passes in a checkout. It runs in namespaces of its own, with a folder for temporary files of its
 * own: whatever a fault leaves behind ends with them, and two of them do not meet. A file that usually takes some
 * seconds has hung when it takes ten times that and a minute.
 */
export async function passes(root: string, check: Check, usualSeconds = Infinity): Promise<boolean> {
  const inside = ['sh', '-c', 'ip link set lo up && exec "$@"', 'sh', ...check.argv(root)];
  const argv = ['unshare', '--pid', '--mount', '--net', '--fork', '--kill-child', '--mount-proc', ...inside];
  const timeoutMs = Math.min(timeoutMaxMs, usualSeconds * 10_000 + 60_000);
  // Short, as the names of sockets are. The number of an installation is free when its folder is gone.
  const temporary = await mkdtemp(join(tmpdir(), 'm-'));
  await chmod(temporary, 0o755);
  try {
    const env = { ...process.env, CI: 'true', TMPDIR: temporary };
    return (await runToEnd(argv, { cwd: root, timeoutMs, env })).exitCode === 0;
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}
