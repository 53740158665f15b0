import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The fuzz targets of the C programs, and what each is linked with besides the source that it includes. */
export const nativeTargets = {
  archive: ['native/gzip.c'],
  request: ['native/request.c'],
  watches: [],
  nameless: [],
  checksums: ['native/snapshot-follow.c', 'native/snapshot-hash.c'],
  netlink: ['native/gzip.c', 'native/request.c'],
  relay: [],
  init: ['native/naming.c', 'native/program.c', 'native/spawner.c'],
  spawner: [],
};

const flags = [
  '-std=gnu11',
  '-g',
  '-O1',
  '-Wall',
  '-Wextra',
  '-Werror',
  '-Wno-unused-function',
  '-fno-omit-frame-pointer',
  '-fno-sanitize-recover=all',
];
const withGcc = ['gcc', ...flags, '-fsanitize=address,undefined'];

/**
 * Compiles with the address and undefined-behaviour sanitizers; any finding ends the program. Throws with the
 * compiler's output.
 */
export function compileSanitized(root, output, sources, more = []) {
  compile([...withGcc, ...more, '-o', output, ...sources.map(source => join(root, source))]);
}

/** Compiles a library that is preloaded into one of our programs. Throws with the compiler's output. */
export function compilePreloaded(root, output, source) {
  compile(['gcc', ...flags, '-shared', '-fPIC', '-o', output, join(root, source)]);
}

/** A fuzz target that makes its own inputs: `OUTPUT RUNS SEED FILE…`. */
export function compileStandalone(root, name, output) {
  compileSanitized(root, output, [
    `test/native/fuzz/${name}.c`,
    'test/native/fuzz/standalone.c',
    ...nativeTargets[name],
  ]);
}

/** A fuzz target with libFuzzer, which needs clang. */
export function compileWithLibFuzzer(root, name, output) {
  const sources = [`test/native/fuzz/${name}.c`, ...nativeTargets[name]].map(source => join(root, source));
  compile(['clang', ...flags, '-fsanitize=fuzzer,address,undefined', '-o', output, ...sources]);
}

/** The initial inputs of a target, and those that once failed. */
export function nativeCorpus(root, name) {
  return ['corpus', 'crashes']
    .map(kind => join(root, 'test/native', kind, name))
    .filter(folder => existsSync(folder))
    .flatMap(folder =>
      readdirSync(folder)
        .sort()
        .map(file => join(folder, file)),
    );
}

/**
 * Runs the targets with libFuzzer, each for a number of runs or seconds. Answers the names of those that failed; their
 * inputs are kept.
 */
export function fuzzNative(root, names, { runs, seconds, seed }) {
  const folder = join(root, 'dist/fuzz');
  mkdirSync(folder, { recursive: true });
  return names.filter(name => {
    const kept = join(root, 'test/native/crashes', name);
    const found = join(folder, `${name}.corpus`);
    for (const path of [kept, found]) mkdirSync(path, { recursive: true });
    compileWithLibFuzzer(root, name, join(folder, name));
    const budget = runs === undefined ? `-max_total_time=${seconds}` : `-runs=${runs}`;
    const argv = [
      budget,
      `-seed=${seed}`,
      '-max_len=4096',
      '-timeout=10',
      '-verbosity=0',
      '-print_final_stats=1',
      `-artifact_prefix=${kept}/`,
      found,
      join(root, 'test/native/corpus', name),
      kept,
    ];
    const { status, stderr } = spawnSync(join(folder, name), argv, { encoding: 'utf8', maxBuffer: 1 << 26 });
    const executed = /number_of_executed_units:\s*(\d+)/.exec(stderr)?.[1] ?? '?';
    process.stdout.write(
      `${status === 0 ? '✓' : '✗'} native ${name}: ${executed} runs\n${status === 0 ? '' : stderr.slice(-4000)}`,
    );
    return status !== 0;
  });
}

function compile(argv) {
  const { status, stderr, error } = spawnSync(argv[0], argv.slice(1), { encoding: 'utf8' });
  if (status !== 0) throw new Error(error ? error.message : stderr);
}
