import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { writeDebianPackage } from '../../../scripts/release/debian-package.mjs';
import { releaseFacts, writeTree } from '../../../scripts/release/tree.mjs';
import { checkout } from './contents.ts';

/**
 * The path of the Debian package of this checkout's commit, made in `directory` if missing. Fails if files differ from
 * the commit.
 */
export async function debianPackageOf(directory: string): Promise<string> {
  const facts = releaseFacts(checkout);
  const file = join(directory, facts.commit, `atoll_${facts.version}_${facts.architecture}.deb`);
  if (existsSync(file)) return file;
  // Packages of other commits are no longer of use.
  rmSync(directory, { recursive: true, force: true });
  const folder = join(directory, facts.commit);
  mkdirSync(folder, { recursive: true });
  const tree = join(folder, 'tree');
  await writeTree(checkout, tree, facts);
  await writeDebianPackage(tree, folder, facts);
  rmSync(tree, { recursive: true });
  return file;
}
