// `npm run release [-- FOLDER]`: makes what people install, by default in dist/release: a Debian package and an
// archive, each with one executable that needs neither Node.js nor npm, and everything that set-up would have built or
// fetched; an npm package with only the executable; an image for container engines; a bill of materials; and the
// digests of all. Two builds of one commit are equal, byte by byte. Exit code 2: the release is made, without its
// image.
import { mkdirSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeArchive, writeChecksums } from './release/archive.mjs';
import { writeDebianPackage } from './release/debian-package.mjs';
import { writeNpmPackage } from './release/npm-package.mjs';
import { writeImage } from './release/image.mjs';
import { releaseFacts, writeTree } from './release/tree.mjs';
import { prepare } from './setup/prepare.mjs';
import { Problem } from './setup/problem.mjs';
import { step } from './setup/progress.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const [, , folder] = process.argv;
const output = resolve(folder ?? join(root, 'dist/release'));
/** Exit code of a release that is complete except for its image. */
const withoutImage = 2;

/** Writes the image; if that is impossible, says why: the rest of a release needs no mirror. */
async function imageOf(tree, facts) {
  try {
    await step('Writing the image', () => writeImage(tree, output, facts));
    return undefined;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return error.message;
  }
}

try {
  await prepare(root);
  const facts = releaseFacts(root);
  rmSync(output, { recursive: true, force: true });
  mkdirSync(output, { recursive: true });
  const tree = join(output, 'tree');
  await step('Putting the files together', () => writeTree(root, tree, facts));
  await step('Writing the Debian package', () => writeDebianPackage(tree, output, facts));
  await step('Writing the archive', () => writeArchive(tree, output, facts));
  await step('Writing the package for npm', () => writeNpmPackage(tree, output, facts));
  const missing = await imageOf(tree, facts);
  rmSync(tree, { recursive: true });
  process.stdout.write(`${writeChecksums(output)}`);
  if (missing !== undefined) {
    process.stderr.write(`\nTHE IMAGE IS MISSING from this release: ${missing}\n`);
    process.exitCode = withoutImage;
  }
} catch (error) {
  if (!(error instanceof Problem)) throw error;
  process.stderr.write(`\nThe release could not be made: ${error.message}\n`);
  process.exit(1);
}
