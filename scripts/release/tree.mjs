import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { billOfMaterials } from '../setup/bill-of-materials.mjs';
import { Problem } from '../setup/problem.mjs';
import { run } from '../setup/run.mjs';

/** What the platform reads besides its executable. Set-up has built or fetched all of it. */
const libraries = ['criu-without-tls.so', 'namespace-owner.so'];
const built = ['agent', 'builder', 'criu', 'dashboard', 'docs', 'runsc', 'seccomp', 'helper', ...libraries];
const further = ['templates', 'docs', 'ops', 'LICENSE', 'README.md', 'SECURITY.md', 'CHANGELOG.md'];

/**
 * The facts of a release: its version, Debian's name of the machine, its commit, and the commit's time in seconds, for
 * all files.
 */
export function releaseFacts(root) {
  const git = (...args) => execFileSync('git', ['-C', root, ...args], { encoding: 'utf8' }).trim();
  const { version, description } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const changed = git('status', '--porcelain', '--untracked-files=no');
  if (changed !== '')
    throw new Problem(`the checkout has changes that no commit holds: commit or undo them first.\n${changed}`);
  return {
    version,
    description,
    architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
    commit: git('rev-parse', 'HEAD'),
    epoch: Number(git('show', '--no-patch', '--format=%ct', 'HEAD')),
  };
}

/** Set-up goes on without CRIU and gVisor if a mirror does not answer; a release must contain them. */
function requireFetched(root) {
  const facts = name => JSON.parse(readFileSync(join(root, 'dist', name, `${name}.json`), 'utf8'));
  const [criu, runsc] = [facts('criu'), facts('runsc')];
  if (!criu.argv || criu.source === 'the distribution')
    throw new Problem(
      `there is no CRIU to bring along (${criu.reason ?? 'this machine has its own'}). Remove dist/criu.from and run it again when the mirror answers.`,
    );
  if (!runsc.program)
    throw new Problem(
      `there is no gVisor to bring along (${runsc.reason}). Remove dist/runsc.from and run it again when the mirror answers.`,
    );
}

/** Assembles what a release installs: `bin/atoll` and everything beside it. */
export async function writeTree(root, tree, { commit, epoch }) {
  requireFetched(root);
  mkdirSync(join(tree, 'bin'), { recursive: true });
  copy(join(root, 'dist/atoll'), join(tree, 'bin/atoll'));
  for (const name of built) copy(join(root, 'dist', name), join(tree, 'dist', name));
  for (const name of further) copy(join(root, name), join(tree, name));
  copy(await nodePackages(root), join(tree, 'dist/node-packages'));
  writeFileSync(join(tree, 'commit'), `${commit}\n`);
  writeFileSync(join(tree, 'sbom.json'), `${JSON.stringify(billOfMaterials(root), null, 2)}\n`);
  settle(tree, epoch);
}

/** Node.js, npm and yarn for the base template, by its lock file: installing the release needs no npm. */
async function nodePackages(root) {
  const folder = join(root, 'dist/release-work/npm');
  mkdirSync(folder, { recursive: true });
  cpSync(join(root, 'templates/base/npm'), folder, { recursive: true });
  await run(['npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: folder });
  return join(folder, 'node_modules');
}

function copy(from, to) {
  if (!existsSync(from)) throw new Problem(`${from} is missing: set-up has not built or fetched it.`);
  cpSync(from, to, { recursive: true, verbatimSymlinks: true });
}

/** Installs a release below `place`: everything in /usr/lib/atoll, and /usr/bin/atoll. */
export function installTree(tree, place, epoch) {
  mkdirSync(join(place, 'usr/lib'), { recursive: true });
  mkdirSync(join(place, 'usr/bin'));
  cpSync(tree, join(place, 'usr/lib/atoll'), { recursive: true, preserveTimestamps: true, verbatimSymlinks: true });
  symlinkSync('../lib/atoll/bin/atoll', join(place, 'usr/bin/atoll'));
  lutimesSync(join(place, 'usr/bin/atoll'), epoch, epoch);
}

/** Sets modes and times that do not depend on the builder or the time of the build. */
export function settle(path, epoch) {
  const stat = lstatSync(path);
  if (!stat.isSymbolicLink()) chmodSync(path, stat.isDirectory() || stat.mode & 0o100 ? 0o755 : 0o644);
  if (stat.isDirectory()) for (const name of readdirSync(path)) settle(join(path, name), epoch);
  lutimesSync(path, epoch, epoch);
}
