// `npm run bench`: prepares the checkout and measures the platform beside what a user would pick instead. `npm run
// bench -- --quick` does a tenth of the runs; `npm run bench -- --compare COMMIT [NAME]` measures another commit and
// this checkout in turn, and reports the differences of all figures, or of those whose name contains NAME.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bunPath } from './setup/npm-packages.mjs';
import { prepare } from './setup/prepare.mjs';
import { Problem } from './setup/problem.mjs';
import { step } from './setup/progress.mjs';
import { run } from './setup/run.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const args = process.argv.slice(2);
try {
  await prepare(root, { forTests: true, forBench: true });
  process.exitCode = args[0] === '--compare' ? await compareWith(args[1], args.slice(2)) : measure();
} catch (error) {
  if (!(error instanceof Problem)) throw error;
  process.stderr.write(`\nThe bench could not be set up: ${error.message}\n`);
  process.exitCode = 1;
}

/** The platform as a whole, then the ways in and out by themselves, which also need a machine to themselves. */
function measure() {
  const parts = ['bench/run.ts', 'bench/cluster/run.ts', 'bench/edge/run.ts', 'bench/egress/run.ts'];
  const failed = parts.filter(part => bun(part, args) !== 0);
  if (failed.length > 0) process.stderr.write(`\nThese did not come to their end: ${failed.join(', ')}\n`);
  return failed.length > 0 ? 1 : 0;
}

async function compareWith(commit, names) {
  if (!commit) throw new Problem('--compare needs a commit');
  const other = mkdtempSync(join(tmpdir(), 'atoll-compare-'));
  try {
    await step(`Preparing ${commit} beside this checkout`, async () => {
      await run(['git', 'worktree', 'add', '--detach', other, commit], { cwd: root });
      await run(['npm', 'ci'], { cwd: other });
      await run([process.execPath, 'scripts/prepare.mjs'], { cwd: other });
    });
    return bun('bench/compare.ts', [other, commit, ...names]);
  } finally {
    spawnSync('git', ['worktree', 'remove', '--force', other], { cwd: root });
    rmSync(other, { recursive: true, force: true });
  }
}

function bun(part, options) {
  const { status } = spawnSync(bunPath(root), [join(root, part), ...options], { cwd: root, stdio: 'inherit' });
  return status ?? 1;
}
