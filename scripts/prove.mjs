// `npm run prove [-- NAME …] [--FIGURE N] [--write]`: prepares the checkout and runs the proofs that are too long for
// `npm test`, all or the named ones. `--write` puts their results into docs/proof.md.
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bunPath } from './setup/npm-packages.mjs';
import { prepare } from './setup/prepare.mjs';
import { Problem } from './setup/problem.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const proofs = {
  storm: 'storm.proof.ts',
  linearizability: 'linearizability.proof.ts',
  power: 'power-loss.proof.ts',
  disk: 'failing-disk.proof.ts',
  exhaustion: 'exhaustion.proof.ts',
  neighbours: 'neighbours.proof.ts',
  load: 'load.proof.ts',
  mutation: 'mutation.proof.ts',
  again: 'mutation-again.proof.ts',
  simulation: 'simulation.proof.ts',
};
/** Figures that proofs accept. */
const figures = 'operations clients per-strike cuts rounds seconds sandboxes minutes mutants seeds seed'.split(' ');
const usage = `usage: npm run prove [-- ${Object.keys(proofs).join('|')}] ${figures.map(name => `[--${name} N]`).join(' ')} [--write]`;
const [settings, named] = [{}, []];
for (const words = process.argv.slice(2); words.length > 0;) {
  const word = words.shift();
  const name = figures.find(figure => word === `--${figure}`);
  if (word === '--write') settings.PROOF_WRITE = '1';
  else if (name && /^\d+$/.test(words[0] ?? ''))
    settings[`PROOF_${name.toUpperCase().replace('-', '_')}`] = words.shift();
  else if (word in proofs) named.push(word);
  else fail(usage, 2);
}
try {
  await prepare(root, { forTests: true });
} catch (error) {
  if (!(error instanceof Problem)) throw error;
  fail(`\nThe proofs could not be set up: ${error.message}`, 1);
}
const dayMs = 24 * 60 * 60_000;
const failed = (named.length > 0 ? named : Object.keys(proofs)).filter(name => {
  // In a mount namespace of its own: processes that others start meanwhile must not hold a disk that a proof takes
  // away.
  const argv = ['--mount', '--propagation', 'private', bunPath(root), 'test', `--timeout=${dayMs}`];
  const file = `./${join('test/proof', proofs[name])}`;
  const env = { ...process.env, ...settings };
  return spawnSync('unshare', [...argv, file], { cwd: root, stdio: 'inherit', env }).status !== 0;
});
process.exit(failed.length === 0 ? 0 : 1);

function fail(text, exitCode) {
  process.stderr.write(`${text}\n`);
  process.exit(exitCode);
}
