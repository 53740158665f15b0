import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const machine = {
  x64: { bun: 'bun-linux-x64-baseline', loader: 'ld-linux-x86-64.so.2' },
  arm64: { bun: 'bun-linux-aarch64', loader: 'ld-linux-aarch64.so.1' },
}[process.arch];

/** The folder of the runtime's package that programs are compiled with. Throws where there is none for this machine. */
export function runtimePackage(root) {
  if (!machine) throw new Error(`there is no runtime for ${process.arch}: x64 and arm64 are supported`);
  return join(root, 'node_modules/@oven', machine.bun);
}

/**
 * Compiles a program with the runtime in it to `folder`/`name`, and puts the loader and libraries that it needs beside
 * it: it runs in any root file system that shows the folder at `mountPoint`, and takes nothing else from it.
 */
export function bundleProgram({ root, entry, name, folder, mountPoint }) {
  const program = join(folder, name);
  // A .env and bunfig.toml of a stranger's must not be read. Bytecode saves most of the start.
  const flags = ['--compile', '--minify', '--bytecode', '--no-compile-autoload-dotenv', '--no-compile-autoload-bunfig'];
  run(join(runtimePackage(root), 'bin/bun'), ['build', ...flags, join(root, entry), '--outfile', program], {
    cwd: folder,
  });
  chmodSync(program, 0o755);
  bundleLibraries(program, join(folder, 'lib'), mountPoint);
}

/** Copies the C library beside the program, so that the root file system around it needs none, or may have another. */
function bundleLibraries(program, folder, mountPoint) {
  mkdirSync(folder, { recursive: true });
  const needed = run('ldd', [program])
    .split('\n')
    .flatMap(line => /(?:=> )?(\/\S+) \(0x/.exec(line)?.[1] ?? []);
  if (needed.length < 2) throw new Error(`ldd found no libraries of ${program}`);
  for (const path of needed) copyFileSync(path, join(folder, path.split('/').at(-1)));
  const loader = join(folder, machine.loader);
  if (!existsSync(loader)) throw new Error(`${machine.loader} is not among the libraries of ${program}`);
  hideHostFiles(loader, mountPoint);
  run('patchelf', [
    '--set-interpreter',
    `${mountPoint}/lib/${machine.loader}`,
    '--force-rpath',
    '--set-rpath',
    `${mountPoint}/lib`,
    program,
  ]);
  for (const name of readdirSync(folder)) chmodSync(join(folder, name), 0o755);
  // The program runs without rights, whatever the umask of this process.
  chmodSync(folder, 0o755);
}

/**
 * The loader must take nothing from the root file system: an /etc/ld.so.preload there would be loaded into the program.
 */
function hideHostFiles(loader, mountPoint) {
  const bytes = readFileSync(loader);
  for (const name of ['/etc/ld.so.preload', '/etc/ld.so.cache']) {
    const at = bytes.indexOf(`${name}\0`);
    if (at < 0) throw new Error(`${machine.loader} does not name ${name}: this C library is not known`);
    // Same length, and in the folder of the program, where there is no such file.
    bytes.write(`${mountPoint}/lib/none`.padEnd(name.length, '-').slice(0, name.length), at, 'latin1');
    if (bytes.indexOf(`${name}\0`) >= 0)
      throw new Error(`${machine.loader} names ${name} twice: this C library is not known`);
  }
  writeFileSync(loader, bytes);
}

export function run(program, args, options = {}) {
  try {
    return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], ...options });
  } catch (error) {
    throw new Error(
      error.code === 'ENOENT'
        ? `${program} is missing`
        : `${program} failed:\n${error.stdout ?? ''}${error.stderr ?? error.message}`,
    );
  }
}
