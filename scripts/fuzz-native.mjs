// `npm run fuzz:native [-- TARGET …] [--seconds N | --runs N] [--seed S]`: searches for inputs that break the C
// programs, with libFuzzer. Only this needs clang (Debian: clang and libclang-rt-14-dev, 230 MB); it says so if clang
// is missing.
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fuzzNative, nativeTargets } from './setup/native-tests.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const options = { seconds: 60, runs: undefined, seed: 1 };
const names = [];
for (let words = process.argv.slice(2); words.length > 0;) {
  const word = words.shift();
  const option = /^--(seconds|runs|seed)$/.exec(word)?.[1];
  if (option) options[option] = Number(words.shift());
  else names.push(word);
}
const wrong =
  names.some(name => !(name in nativeTargets)) ||
  ![options.seconds, options.seed, options.runs ?? 1].every(Number.isSafeInteger);
if (wrong)
  fail(
    `usage: npm run fuzz:native [-- TARGET …] [--seconds N | --runs N] [--seed S]\ntargets: ${Object.keys(nativeTargets).join(' ')}`,
  );
if (spawnSync('clang', ['--version']).error)
  fail('libFuzzer needs clang: apt-get install --no-install-recommends clang libclang-rt-14-dev');
const failed = fuzzNative(root, names.length > 0 ? names : Object.keys(nativeTargets), options);
if (failed.length > 0) fail(`failed: ${failed.join(', ')}; their inputs are in ${join(root, 'test/native/crashes')}`);

function fail(text) {
  process.stderr.write(`${text}\n`);
  process.exit(1);
}
