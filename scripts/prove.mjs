// `npm run prove [-- --operations N] [--clients N] [--per-strike N] [--seed N] [--write]`: prepares the checkout and
// runs the proofs that are too long for `npm test`. `--write` puts the figures into docs/proof.md.
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bunPath } from './setup/npm-packages.mjs';
import { prepare } from './setup/prepare.mjs';
import { Problem } from './setup/problem.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const settings = {};
for (const words = process.argv.slice(2); words.length > 0;) {
  const word = words.shift();
  const [, name] = /^--(operations|clients|per-strike|seed)$/.exec(word) ?? [];
  if (word === '--write') settings.PROOF_WRITE = '1';
  else if (name && /^\d+$/.test(words[0] ?? ''))
    settings[`PROOF_${name.toUpperCase().replace('-', '_')}`] = words.shift();
  else fail('usage: npm run prove [-- --operations N] [--clients N] [--per-strike N] [--seed N] [--write]', 2);
}
try {
  await prepare(root, { forTests: true });
} catch (error) {
  if (!(error instanceof Problem)) throw error;
  fail(`\nThe proofs could not be set up: ${error.message}`, 1);
}
const dayMs = 24 * 60 * 60_000;
const { status } = spawnSync(
  bunPath(root),
  ['test', `--timeout=${dayMs}`, `./${join('test/proof', 'storm.proof.ts')}`],
  { cwd: root, stdio: 'inherit', env: { ...process.env, ...settings } },
);
process.exit(status ?? 1);

function fail(text, exitCode) {
  process.stderr.write(`${text}\n`);
  process.exit(exitCode);
}
