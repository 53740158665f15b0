// Builds the in-sandbox agent into a folder that is mounted, as it is, at /.agent of every sandbox. Plain Node.js without packages.
//
//   node scripts/build-agent.mjs [folder]     default: dist/agent
//
// Needs gcc with musl (musl-tools), patchelf and the C library of the machine that it runs on.
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { digestOf } from './setup/stamp.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const output = resolve(process.argv[2] ?? join(root, 'dist/agent'));

/** Where the folder is seen in a sandbox: the agent's interpreter and libraries are named by it. */
const mountPoint = '/.agent';
const machine = { x64: { bun: 'bun-linux-x64-baseline', loader: 'ld-linux-x86-64.so.2' }, arm64: { bun: 'bun-linux-aarch64', loader: 'ld-linux-aarch64.so.1' } }[process.arch];
if (!machine) fail(`no agent for ${process.arch}: x64 and arm64 are supported`);
const bun = join(root, 'node_modules/@oven', machine.bun, 'bin/bun');
const inputs = ['src/agent', 'src/base', 'src/protocol', 'src/bin/agent.ts', 'native/init.c', 'native/relay.c', 'native/remove-tree.c', 'native/remove-tree.h', 'scripts/build-agent.mjs', 'tsconfig.json'];

const digest = digestOf(inputs.map(input => join(root, input)), `${process.arch} ${readFileSync(join(root, 'node_modules/@oven', machine.bun, 'package.json'), 'utf8')}`);
const stamp = join(output, 'made-from');
if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== digest) build();

function build() {
  const temporary = `${output}.new`;
  rmSync(temporary, { recursive: true, force: true });
  mkdirSync(join(temporary, 'lib'), { recursive: true });
  buildInit(join(temporary, 'init'));
  buildAgent(join(temporary, 'agent'));
  bundleLibraries(join(temporary, 'agent'), join(temporary, 'lib'));
  writeFileSync(join(temporary, 'made-from'), digest);
  // Sandboxes that run from the former folder keep its files: they are removed, never written to.
  rmSync(output, { recursive: true, force: true });
  renameSync(temporary, output);
}

function buildInit(file) {
  const sources = ['init.c', 'relay.c', 'remove-tree.c'].map(name => join(root, 'native', name));
  run('musl-gcc', ['-std=gnu11', '-static', '-Os', '-s', '-Wall', '-Wextra', '-Werror', '-fstack-protector-strong', '-o', file, ...sources]);
}

function buildAgent(file) {
  // A sandbox's own .env and bunfig.toml must not be read. Bytecode saves most of the start.
  const flags = ['--compile', '--minify', '--bytecode', '--no-compile-autoload-dotenv', '--no-compile-autoload-bunfig'];
  run(bun, ['build', ...flags, join(root, 'src/bin/agent.ts'), '--outfile', file], { cwd: dirname(file) });
  chmodSync(file, 0o755);
}

/** Copies the C library beside the agent, so that the root file system of a sandbox needs none, or may have another. */
function bundleLibraries(agent, folder) {
  const needed = run('ldd', [agent]).split('\n').flatMap(line => /(?:=> )?(\/\S+) \(0x/.exec(line)?.[1] ?? []);
  if (needed.length < 2) fail(`ldd found no libraries of ${agent}`);
  for (const path of needed) copyFileSync(path, join(folder, path.split('/').at(-1)));
  const loader = join(folder, machine.loader);
  if (!existsSync(loader)) fail(`${machine.loader} is not among the libraries of the agent`);
  hideHostFiles(loader);
  run('patchelf', ['--set-interpreter', `${mountPoint}/lib/${machine.loader}`, '--force-rpath', '--set-rpath', `${mountPoint}/lib`, agent]);
  for (const name of readdirSync(folder)) chmodSync(join(folder, name), 0o755);
}

/** The loader must take nothing from the root file system: an /etc/ld.so.preload there would be loaded into the agent. */
function hideHostFiles(loader) {
  const bytes = readFileSync(loader);
  for (const name of ['/etc/ld.so.preload', '/etc/ld.so.cache']) {
    const at = bytes.indexOf(`${name}\0`);
    if (at < 0) fail(`${machine.loader} does not name ${name}: this C library is not known`);
    // Same length, and in the folder of the agent, where there is no such file.
    bytes.write(`${mountPoint}/lib/none`.padEnd(name.length, '-').slice(0, name.length), at, 'latin1');
    if (bytes.indexOf(`${name}\0`) >= 0) fail(`${machine.loader} names ${name} twice: this C library is not known`);
  }
  writeFileSync(loader, bytes);
}

function run(program, args, options = {}) {
  try {
    return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], ...options });
  } catch (error) {
    fail(error.code === 'ENOENT' ? `${program} is missing` : `${program} failed:\n${error.stdout ?? ''}${error.stderr ?? error.message}`);
  }
}

function fail(message) {
  process.stderr.write(`The agent was not built: ${message}\n`);
  process.exit(1);
}
