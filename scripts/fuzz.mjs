// `npm run fuzz`: prepares the checkout and searches for inputs that break a parser. test/fuzz/run.ts has the options.
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
  process.stderr.write(`\nFuzzing could not be set up: ${error.message}\n`);
  process.exit(1);
}
const { status } = spawnSync(bunPath(root), [join(root, 'test/fuzz/run.ts'), ...process.argv.slice(2)], {
  cwd: root,
  stdio: 'inherit',
});
process.exit(status ?? 1);
