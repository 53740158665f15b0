import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const machine = {
  x64: { bun: 'bun-linux-x64-baseline', loader: 'ld-linux-x86-64.so.2', multiarch: 'x86_64-linux-gnu' },
  arm64: { bun: 'bun-linux-aarch64', loader: 'ld-linux-aarch64.so.1', multiarch: 'aarch64-linux-gnu' },
}[process.arch];
/** The file name of the loader's copy. Its path replaces the system's in a program. */
const loaderName = 'ld.so';

/** The folder of the runtime package that programs are compiled with. Throws if there is none for this machine. */
export function runtimePackage(root) {
  if (!machine) throw new Error(`there is no runtime for ${process.arch}: x64 and arm64 are supported`);
  return join(root, 'node_modules/@oven', machine.bun);
}

/**
 * Compiles a program with the runtime in it to `folder`/`name`, and puts the loader and libraries that it needs beside
 * it: it runs in any root file system that shows the folder at `mountPoint`, and uses nothing else from it.
 */
export function bundleProgram({ root, entry, name, folder, mountPoint }) {
  const program = join(folder, name);
  // It must not read a stranger's .env and bunfig.toml. Bytecode saves most of the start.
  const flags = ['--compile', '--minify', '--bytecode', '--no-compile-autoload-dotenv', '--no-compile-autoload-bunfig'];
  run(join(runtimePackage(root), 'bin/bun'), ['build', ...flags, join(root, entry), '--outfile', program], {
    cwd: folder,
  });
  chmodSync(program, 0o755);
  bundleLibraries(program, join(folder, 'lib'), mountPoint);
}

/**
 * Copies the C library beside the program, so that the surrounding root file system needs none and may have a different
 * one.
 */
function bundleLibraries(program, folder, mountPoint) {
  mkdirSync(folder, { recursive: true });
  const needed = run('ldd', [program])
    .split('\n')
    .flatMap(line => /(?:=> )?(\/\S+) \(0x/.exec(line)?.[1] ?? []);
  const isLoader = path => basename(path) === machine.loader;
  if (needed.length < 2 || !needed.some(isLoader)) throw new Error(`ldd found no libraries of ${program}`);
  for (const path of needed) copyFileSync(path, join(folder, isLoader(path) ? loaderName : basename(path)));
  hideHostFiles(join(folder, loaderName), mountPoint);
  setInterpreter(program, `${mountPoint}/lib/${loaderName}`);
  for (const name of readdirSync(folder)) chmodSync(join(folder, name), 0o755);
  // The program runs without rights, so this must not depend on the umask of this process.
  chmodSync(folder, 0o755);
}

/**
 * The loader must take nothing from the root file system: it would load an /etc/ld.so.preload there, or a libc.so.6 in
 * /lib, into the program. Each such path in it is replaced by one of the same length. Paths too short to lead to the
 * program's folder are replaced by a directory that nobody can put files into.
 */
function hideHostFiles(loader, mountPoint) {
  const none = name => `${mountPoint}/lib/none`.padEnd(name.length, '-').slice(0, name.length);
  const directory = (length, path) => `${path}/`.padEnd(length, '/');
  const { multiarch } = machine;
  const places = [`/lib/${multiarch}/`, `/usr/lib/${multiarch}/`, '/lib/', '/usr/lib/'];
  const [own, ...others] = places;
  const noPlace = others.map(({ length }) => directory(length, '/sys'));
  const bytes = readFileSync(loader);
  const replace = (from, to) => {
    let at = bytes.indexOf(`${from}\0`);
    if (at < 0) throw new Error(`${machine.loader} does not name ${from}: this C library is not known`);
    for (; at >= 0; at = bytes.indexOf(`${from}\0`)) bytes.write(to, at, 'latin1');
  };
  for (const name of ['/etc/ld.so.preload', '/etc/ld.so.cache']) replace(name, none(name));
  replace(places.join('\0'), [directory(own.length, `${mountPoint}/lib`), ...noPlace].join('\0'));
  writeFileSync(loader, bytes);
}

/**
 * Makes the kernel start a program with the loader at `path`, written over the former one: programs linked for fixed
 * addresses, as the runtime is on arm64, break if anything in them moves. Source of the format: elf(5).
 */
function setInterpreter(program, path) {
  const bytes = readFileSync(program);
  const headersAt = Number(bytes.readBigUInt64LE(0x20));
  const [size, count] = [bytes.readUInt16LE(0x36), bytes.readUInt16LE(0x38)];
  const interpreter = 3;
  const header = Array.from({ length: count }, (_, index) => headersAt + index * size).find(
    at => bytes.readUInt32LE(at) === interpreter,
  );
  if (header === undefined) throw new Error(`${program} names no loader`);
  const [at, room] = [0x08, 0x20].map(field => Number(bytes.readBigUInt64LE(header + field)));
  if (path.length >= room)
    throw new Error(`${path} is longer than ${room - 1} characters, which ${program} has for it`);
  bytes.fill(0, at, at + room).write(path, at, 'latin1');
  writeFileSync(program, bytes);
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
