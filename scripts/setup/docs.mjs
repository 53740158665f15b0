import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { bunPath } from './npm-packages.mjs';
import { Problem } from './problem.mjs';
import { step } from './progress.mjs';
import { run } from './run.mjs';
import { digestOf, isMadeFrom, markMadeFrom } from './stamp.mjs';

/** What the site is made from, relative to the repository. */
const inputs = [
  'docs',
  'scripts/docs',
  'scripts/setup/docs.mjs',
  'README.md',
  'ARCHITECTURE.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
];

/** Builds the documentation to dist/docs if its source changed. */
export async function buildDocs(root) {
  const output = join(root, 'dist/docs');
  const digest = digestOf(inputs.map(input => join(root, input)));
  if (isMadeFrom(output, digest)) return;
  await step('Building the documentation', async () => {
    await writeDocs(root, output);
    markMadeFrom(output, digest);
  }).catch(error => {
    // The platform runs without it; a test of the checkout reports what is wrong with it.
    if (!(error instanceof Problem)) throw error;
    process.stderr.write(`The documentation could not be built, and is not served: ${error.message}\n`);
  });
}

/** Writes the site to a folder, replacing what is there. */
export async function writeDocs(root, output) {
  const temporary = `${output}.new`;
  rmSync(temporary, { recursive: true, force: true });
  mkdirSync(temporary, { recursive: true });
  await run([bunPath(root), join(root, 'scripts/docs/build.mjs'), temporary, root], { cwd: root });
  rmSync(output, { recursive: true, force: true });
  renameSync(temporary, output);
}
