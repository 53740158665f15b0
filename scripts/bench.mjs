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
const { status } = spawnSync(bunPath(root), [join(root, 'bench/run.ts'), ...process.argv.slice(2)], { cwd: root, stdio: 'inherit' });
process.exit(status ?? 1);
