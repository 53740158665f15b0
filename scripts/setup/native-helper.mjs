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
/** The source of a library that CRIU loads in place of one that it does not need, and the versions of its symbols. */
const withoutTls = { source: 'criu-without-tls.c', soname: 'libgnutls.so.30', versions: 'criu-without-tls.map' };
/** Sources that both use. */
const shared = ['groups.c', 'gzip.c'];
const flags = ['-std=gnu11', '-O2', '-Wall', '-Wextra', '-Werror', '-fstack-protector-strong', '-D_FORTIFY_SOURCE=2'];

/** Compiles the node's helper (every file of native/ except the agent's) to dist/helper if its source changed. */
export async function buildNativeHelper(root) {
  const folder = join(root, 'native');
  const sources = readdirSync(folder)
    .filter(name => name.endsWith('.c') && !inside.includes(name) && !preloaded.includes(name))
    .filter(name => name !== withoutTls.source)
    .sort();
  const output = join(root, 'dist/helper');
  const headers = readdirSync(folder).filter(name => name.endsWith('.h'));
  const inputs = [...sources, ...preloaded, withoutTls.source, withoutTls.versions, ...headers].map(name =>
    join(folder, name),
  );
  const digest = digestOf(inputs, `${flags.join(' ')} ${process.arch}`);
  if (isMadeFrom(output, digest)) return;
  await step('Building the native helper', async () => {
    mkdirSync(join(root, 'dist'), { recursive: true });
    await run(['gcc', ...flags, '-o', `${output}.new`, ...sources], { cwd: folder });
    await buildLibrary(root, 'namespace-owner.so', [...preloaded, ...shared]);
    const named = [`-Wl,-soname,${withoutTls.soname}`, `-Wl,--version-script=${withoutTls.versions}`];
    await buildLibrary(root, 'criu-without-tls.so', [...named, withoutTls.source]);
    // A running platform keeps the file that it was started from.
    renameSync(`${output}.new`, output);
    markMadeFrom(output, digest);
  });
}

/** Compiles a library to dist/. */
async function buildLibrary(root, name, argv) {
  const output = join(root, 'dist', name);
  await run(['gcc', ...flags, '-shared', '-fPIC', '-o', `${output}.new`, ...argv], { cwd: join(root, 'native') });
  renameSync(`${output}.new`, output);
}
