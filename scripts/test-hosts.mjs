// `npm run test:hosts`: starts Atoll on machines of other distributions and kernels, in QEMU, and looks at what works
// there.
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bunPath } from './setup/npm-packages.mjs';
import { prepare } from './setup/prepare.mjs';
import { Problem } from './setup/problem.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
try {
  await prepare(root, { forLaboratory: true });
} catch (error) {
  if (!(error instanceof Problem)) throw error;
  process.stderr.write(`\nThe laboratory could not be set up: ${error.message}\n`);
  process.exit(1);
}
process.exit(
  spawnSync(bunPath(root), [join(root, 'test/hosts/main.ts'), ...process.argv.slice(2)], {
    cwd: root,
    stdio: 'inherit',
  }).status ?? 1,
);
