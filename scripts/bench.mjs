// `npm run bench`: prepares the checkout and measures the platform beside what a user would pick instead.
// `npm run bench -- --quick` takes a tenth of the runs.
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bunPath } from './setup/npm-packages.mjs';
import { prepare } from './setup/prepare.mjs';
import { Problem } from './setup/problem.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
try {
  await prepare(root, { forTests: true });
} catch (error) {
  if (!(error instanceof Problem)) throw error;
  process.stderr.write(`\nThe bench could not be set up: ${error.message}\n`);
  process.exit(1);
}
// The platform as a whole, then the ways in and out alone, which need a machine to themselves as well.
const failed = ['bench/run.ts', 'bench/edge/run.ts', 'bench/egress/run.ts'].filter(part => {
  const { status } = spawnSync(bunPath(root), [join(root, part), ...process.argv.slice(2)], {
    cwd: root,
    stdio: 'inherit',
  });
  return status !== 0;
});
if (failed.length > 0) process.stderr.write(`\nThese did not come to their end: ${failed.join(', ')}\n`);
process.exit(failed.length > 0 ? 1 : 0);
