// `npm run release [-- FOLDER]`: makes what people install, by default in dist/release: a Debian package and an
// archive, each with one executable that needs neither Node.js nor npm, and everything that set-up would have built or
// fetched; a bill of materials; and the digests of all. Two builds of one commit are equal, octet by octet.
import { mkdirSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeArchive, writeChecksums } from './release/archive.mjs';
import { writeDebianPackage } from './release/debian-package.mjs';
import { releaseFacts, writeTree } from './release/tree.mjs';
import { prepare } from './setup/prepare.mjs';
import { Problem } from './setup/problem.mjs';
import { step } from './setup/progress.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const [, , folder] = process.argv;
const output = resolve(folder ?? join(root, 'dist/release'));

try {
  await prepare(root);
  const facts = releaseFacts(root);
  rmSync(output, { recursive: true, force: true });
  mkdirSync(output, { recursive: true });
  const tree = join(output, 'tree');
  await step('Putting the files together', () => writeTree(root, tree, facts));
  await step('Writing the Debian package', () => writeDebianPackage(tree, output, facts));
  await step('Writing the archive', () => writeArchive(tree, output, facts));
  rmSync(tree, { recursive: true });
  process.stdout.write(`${writeChecksums(output)}`);
} catch (error) {
  if (!(error instanceof Problem)) throw error;
  process.stderr.write(`\nThe release could not be made: ${error.message}\n`);
  process.exit(1);
}
