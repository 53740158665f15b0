import { mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { bundleProgram, run, runtimePackage } from './bundle-program.mjs';
import { step } from './progress.mjs';
import { digestOf, isMadeFrom, markMadeFrom } from './stamp.mjs';

/** Mount point of the folder in a sandbox: the agent finds its interpreter and libraries by this path. */
const mountPoint = '/.agent';
/** Sources of the program that is process 1 of a sandbox, relative to the repository. */
export const initSources = ['init', 'naming', 'program', 'relay', 'remove-tree', 'spawner'].map(
  name => `native/${name}.c`,
);
/** Sources of the agent, relative to the repository. */
const inputs = [
  'src/agent',
  'src/base',
  'src/protocol',
  'src/bin/agent.ts',
  'native/remove-tree.h',
  'native/spawner.h',
  ...initSources,
  'scripts/setup/agent.mjs',
  'scripts/setup/bundle-program.mjs',
  'tsconfig.json',
  'package-lock.json',
];

/**
 * Builds the in-sandbox agent to dist/agent if its source changed; every sandbox mounts it at /.agent. Needs gcc with
 * musl (musl-tools) and the C library of the machine that it runs on.
 */
export async function buildAgent(root) {
  const output = join(root, 'dist/agent');
  const digest = digestOf(
    inputs.map(input => join(root, input)),
    `${process.arch} ${readFileSync(join(runtimePackage(root), 'package.json'), 'utf8')}`,
    root,
  );
  if (isMadeFrom(output, digest)) return;
  await step('Building the agent', async () => {
    const temporary = `${output}.new`;
    rmSync(temporary, { recursive: true, force: true });
    mkdirSync(temporary, { recursive: true });
    buildInit(root, join(temporary, 'init'));
    bundleProgram({ root, entry: 'src/bin/agent.ts', name: 'agent', folder: temporary, mountPoint });
    // Sandboxes that run from the previous folder keep its files: these are removed, never overwritten.
    rmSync(output, { recursive: true, force: true });
    renameSync(temporary, output);
    markMadeFrom(output, digest);
  });
}

function buildInit(root, file) {
  const sources = initSources.map(name => join(root, name));
  const warnings = ['-Wall', '-Wextra', '-Werror'];
  const flags = ['-std=gnu11', '-static', '-Os', '-s', ...warnings, '-fstack-protector-strong'];
  run('musl-gcc', [...flags, '-o', file, ...sources]);
}
