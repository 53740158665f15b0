import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { runtimePackage } from './bundle-program.mjs';
import { step } from './progress.mjs';
import { run } from './run.mjs';
import { digestOf, isMadeFrom, markMadeFrom } from './stamp.mjs';

/** What the executable is made from, relative to the repository; bin/atoll looks at the same files. */
const inputs = ['src', 'package.json', 'package-lock.json', 'tsconfig.json', 'scripts/setup/executable.mjs'];

/** Compiles the platform to dist/atoll if its source changed: this loads several times faster than separate files. */
export async function buildExecutable(root) {
  const output = join(root, 'dist/atoll');
  // Taken before anything is read: files that change meanwhile are newer.
  const seconds = (Date.now() / 1000).toFixed(3);
  const digest = digestOf(
    inputs.map(input => join(root, input)),
    `${process.arch} ${readFileSync(join(runtimePackage(root), 'package.json'), 'utf8')}`,
    root,
  );
  if (!isMadeFrom(output, digest))
    await step('Compiling the platform', async () => {
      await compileExecutable(root, output);
      markMadeFrom(output, digest);
    });
  writeFileSync(`${output}.compared`, `${seconds}\n`);
}

/**
 * Compiles the command line and all programs of the platform, with the runtime in them, into one file. Bytecode saves
 * most of the loading time, and splitting parts into files saves the rest; with the source map, errors name source
 * lines.
 */
export async function compileExecutable(root, output) {
  const flags = ['--compile', '--splitting', '--format=esm', '--bytecode', '--minify-whitespace', '--minify-syntax'];
  const own = ['--sourcemap=inline', '--no-compile-autoload-dotenv', '--no-compile-autoload-bunfig'];
  // The compiler also writes maps beside it. The executable contains its own name, which is the same in every release.
  const folder = mkdtempSync(`${dirname(output)}/compile-`);
  const program = join(folder, 'atoll');
  try {
    // Paths in it are relative to the working directory.
    const argv = ['build', ...flags, ...own, 'src/bin/executable.ts', '--outfile', program];
    await run([join(runtimePackage(root), 'bin/bun'), ...argv], { cwd: root });
    // Processes that run the previous one keep it.
    renameSync(program, output);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
