import { readFileSync, statSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { readIfThere } from '../base/small-file.ts';

/** The file of a release that names the commit it was made from. */
const commitFile = 'commit';

/**
 * The commit (hex) of a checkout, found without running git, or the one a release was made from; empty if neither
 * tells.
 */
export function commitOf(checkout: string): string {
  try {
    const git = gitDirOf(checkout);
    const head = readFileSync(join(git, 'HEAD'), 'utf8').trim();
    const name = /^ref: (.+)$/.exec(head)?.[1];
    return name === undefined ? head : commitOfBranch(git, name);
  } catch {
    // No git checkout: a release.
    return readIfThere(join(checkout, commitFile)) ?? '';
  }
}

/** A folder or, in a worktree, a file that names it. Source: gitrepository-layout(5). */
function gitDirOf(checkout: string): string {
  const path = join(checkout, '.git');
  if (statSync(path).isDirectory()) return path;
  const named = readFileSync(path, 'utf8')
    .replace(/^gitdir: /, '')
    .trim();
  return isAbsolute(named) ? named : join(checkout, named);
}

function commitOfBranch(git: string, name: string): string {
  const common = readIfThere(join(git, 'commondir'));
  const shared = common === undefined ? git : join(git, common);
  const loose = readIfThere(join(git, name)) ?? readIfThere(join(shared, name));
  const packed = readIfThere(join(shared, 'packed-refs')) ?? '';
  return (
    loose ??
    packed
      .split('\n')
      .find(line => line.endsWith(` ${name}`))
      ?.split(' ')[0] ??
    ''
  );
}
