import { mkdirSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { step } from './progress.mjs';
import { run } from './run.mjs';
import { digestOf, isMadeFrom, markMadeFrom } from './stamp.mjs';

/** Sources of the agent's init, which runs inside sandboxes. */
export const inside = ['init.c', 'naming.c', 'program.c', 'relay.c', 'spawner.c'];
/** Sources of a library that is loaded into the programs that the helper starts. */
export const preloaded = [
  'criu-children.c',
  'criu-conntrack.c',
  'criu-programs.c',
  'criu-tar.c',
  'memory-later.c',
  'namespace-owner.c',
];
/** Sources that both use. */
const shared = ['groups.c', 'gzip.c'];
const flags = ['-std=gnu11', '-O2', '-Wall', '-Wextra', '-Werror', '-fstack-protector-strong', '-D_FORTIFY_SOURCE=2'];

/** Compiles the node's helper (every file of native/ except the agent's) to dist/helper if its source changed. */
export async function buildNativeHelper(root) {
  const folder = join(root, 'native');
  const sources = readdirSync(folder)
    .filter(name => name.endsWith('.c') && !inside.includes(name) && !preloaded.includes(name))
    .sort();
  const output = join(root, 'dist/helper');
  const inputs = [...sources, ...preloaded, ...readdirSync(folder).filter(name => name.endsWith('.h'))].map(name =>
    join(folder, name),
  );
  const digest = digestOf(inputs, `${flags.join(' ')} ${process.arch}`);
  if (isMadeFrom(output, digest)) return;
  await step('Building the native helper', async () => {
    mkdirSync(join(root, 'dist'), { recursive: true });
    await run(['gcc', ...flags, '-o', `${output}.new`, ...sources], { cwd: folder });
    await run(
      ['gcc', ...flags, '-shared', '-fPIC', '-o', join(root, 'dist/namespace-owner.so.new'), ...preloaded, ...shared],
      { cwd: folder },
    );
    renameSync(join(root, 'dist/namespace-owner.so.new'), join(root, 'dist/namespace-owner.so'));
    // A running platform keeps the file that it was started from.
    renameSync(`${output}.new`, output);
    markMadeFrom(output, digest);
  });
}
