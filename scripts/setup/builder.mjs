import { chmodSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { bundleProgram } from './bundle-program.mjs';
import { step } from './progress.mjs';
import { digestOf, isMadeFrom, markMadeFrom } from './stamp.mjs';

/** Sources of the builder, relative to the repository. */
const inputs = [
  'src/builder',
  'src/base',
  'src/protocol',
  'src/bin/builder.ts',
  'scripts/setup/bundle-program.mjs',
  'scripts/setup/builder.mjs',
  'tsconfig.json',
  'package-lock.json',
];

/** Where a builder sees its own folder: native/confine.c puts it there. */
const mountPoint = '/.builder';

/** Builds the program that reads strangers' bytes to dist/builder if its source changed. */
export async function buildBuilder(root) {
  const output = join(root, 'dist/builder');
  const digest = digestOf(
    inputs.map(input => join(root, input)),
    process.arch,
  );
  if (isMadeFrom(output, digest)) return;
  await step('Building the builder', async () => {
    const temporary = `${output}.new`;
    rmSync(temporary, { recursive: true, force: true });
    mkdirSync(temporary, { recursive: true });
    bundleProgram({ root, entry: 'src/bin/builder.ts', name: 'builder', folder: temporary, mountPoint });
    chmodSync(temporary, 0o755);
    // A running platform's builders keep the files that they were started from.
    rmSync(output, { recursive: true, force: true });
    renameSync(temporary, output);
    markMadeFrom(output, digest);
  });
}
