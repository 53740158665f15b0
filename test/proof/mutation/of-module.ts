import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { bunPath } from '../../../scripts/setup/npm-packages.mjs';
import { runToEnd } from '../../support/process.ts';
import { repository } from '../../support/platform.ts';
import { sourceFiles } from '../../tidy/source-files.ts';
import { copyOfCheckout, compiles, putInto } from './copy.ts';
import { mutantsOf } from './mutants.ts';

// `bun test/proof/mutation/of-module.ts SOURCE [TEST …]`: puts each possible fault into one source file, one at a time,
// and lists those that its tests do not see. The default test is the one beside the source.

/** For a test that waits for something that a fault prevents. */
const timeoutMs = 30_000;

const [source = '', ...named] = process.argv.slice(2);
const tests = named.length > 0 ? named : [source.replace(/\.tsx?$/, '.test.ts')];
const mutants = sourceFiles(['src'])
  .filter(({ path }) => path === source)
  .flatMap(mutantsOf);
if (mutants.length === 0 || !tests.every(path => existsSync(join(repository, path)))) {
  console.error(
    'usage: bun test/proof/mutation/of-module.ts SOURCE [TEST …], both below the checkout; a TEST must be there',
  );
  process.exit(2);
}
await using copy = await copyOfCheckout();
const argv = [bunPath(copy.root), 'test', '--bail', `--timeout=${timeoutMs}`, ...tests.map(path => `./${path}`)];
const passes = async () => (await runToEnd(argv, { cwd: copy.root, timeoutMs })).exitCode === 0;
if (!(await passes())) throw new Error(`${tests.join(', ')} must pass without a fault, and end within ${timeoutMs} ms`);
// Otherwise every unseen fault would count as one that could not be made.
if (!(await compiles(copy.root, source))) throw new Error('the checkout must compile without a fault');
let [tried, seen] = [0, 0];
for (const mutant of mutants) {
  using _fault = putInto(copy.root, mutant);
  const isSeen = !(await passes());
  if (!isSeen && !(await compiles(copy.root, mutant.path))) continue;
  tried++;
  if (isSeen) seen++;
  else console.log(`not seen: ${mutant.kind} ${mutant.path}:${mutant.line} ${mutant.change}`);
}
console.log(`${seen} of ${tried} faults seen`);
