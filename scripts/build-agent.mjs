// Builds the in-sandbox agent into a folder that every sandbox mounts at /.agent. Plain Node.js without packages.
//
// node scripts/build-agent.mjs [folder]     default: dist/agent
//
// Needs gcc with musl (musl-tools), patchelf and the C library of the machine that it runs on.
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleProgram, run, runtimePackage } from './setup/bundle-program.mjs';
import { digestOf } from './setup/stamp.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const output = resolve(process.argv[2] ?? join(root, 'dist/agent'));

/** Mount point of the folder in a sandbox: the agent's interpreter and libraries are named by it. */
const mountPoint = '/.agent';
const inputs = [
  'src/agent',
  'src/base',
  'src/protocol',
  'src/bin/agent.ts',
  'native/init.c',
  'native/relay.c',
  'native/remove-tree.c',
  'native/remove-tree.h',
  'scripts/build-agent.mjs',
  'scripts/setup/bundle-program.mjs',
  'tsconfig.json',
];

try {
  const digest = digestOf(
    inputs.map(input => join(root, input)),
    `${process.arch} ${readFileSync(join(runtimePackage(root), 'package.json'), 'utf8')}`,
    root,
  );
  const stamp = join(output, 'made-from');
  if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== digest) build(digest);
} catch (error) {
  process.stderr.write(`The agent was not built: ${error.message}\n`);
  process.exit(1);
}

function build(digest) {
  const temporary = `${output}.new`;
  rmSync(temporary, { recursive: true, force: true });
  mkdirSync(temporary, { recursive: true });
  buildInit(join(temporary, 'init'));
  bundleProgram({ root, entry: 'src/bin/agent.ts', name: 'agent', folder: temporary, mountPoint });
  writeFileSync(join(temporary, 'made-from'), digest);
  // Sandboxes that run from the former folder keep its files: they are removed, never written to.
  rmSync(output, { recursive: true, force: true });
  renameSync(temporary, output);
}

function buildInit(file) {
  const sources = ['init.c', 'relay.c', 'remove-tree.c'].map(name => join(root, 'native', name));
  run('musl-gcc', [
    '-std=gnu11',
    '-static',
    '-Os',
    '-s',
    '-Wall',
    '-Wextra',
    '-Werror',
    '-fstack-protector-strong',
    '-o',
    file,
    ...sources,
  ]);
}
