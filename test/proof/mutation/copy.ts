import { readFileSync, writeFileSync } from 'node:fs';
import { cp, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runToEnd } from '../../support/process.ts';
import { repository } from '../../support/platform.ts';
import type { Mutant } from './mutants.ts';

/** A copy of this checkout with everything it has built, in a temporary folder: faults are put there and not here. */
export async function copyOfCheckout(): Promise<AsyncDisposable & { root: string }> {
  const root = await mkdtemp(join(tmpdir(), 'atoll-mutation-'));
  // Including new files that are not committed yet.
  const kinds = ['--cached', '--others', '--exclude-standard'];
  const names = (await runToEnd(['git', '-C', repository, 'ls-files', '-z', ...kinds])).stdout
    .split('\0')
    .filter(Boolean);
  for (const name of names) await cp(join(repository, name), join(root, name), { verbatimSymlinks: true });
  // With owners: the server data that tests copy belongs to PostgreSQL.
  const { exitCode } = await runToEnd(['cp', '-a', join(repository, 'dist'), root]);
  if (exitCode !== 0) throw new Error('what is built could not be copied');
  await symlink(join(repository, 'node_modules'), join(root, 'node_modules'));
  return { root, [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }) };
}

/** Builds what has changed in a copy. Answers whether it could be built. */
export async function build(root: string): Promise<boolean> {
  const { exitCode } = await runToEnd(['node', 'scripts/prepare.mjs'], { cwd: root, timeoutMs: 5 * 60_000 });
  return exitCode === 0;
}

/** Puts a fault into a copy of the checkout, until it is disposed of. */
export function putInto(root: string, { path, text }: Mutant): Disposable {
  const file = join(root, path);
  const sound = readFileSync(file);
  writeFileSync(file, text);
  return { [Symbol.dispose]: () => writeFileSync(file, sound) };
}

const compilerTimeoutMs = 5 * 60_000;

/**
 * A fault that the compiler refuses could not be made, and does not count. What it knows of all other files is kept
 * from fault to fault.
 */
export async function compiles(root: string, path: string): Promise<boolean> {
  const project = path.startsWith('src/dashboard/') ? 'src/dashboard' : '.';
  const known = `dist/mutation-${project.replaceAll(/\W/g, '-')}.tsbuildinfo`;
  const argv = ['node_modules/.bin/tsc', '-p', project, '--incremental', '--tsBuildInfoFile', known];
  return (await runToEnd(argv, { cwd: root, timeoutMs: compilerTimeoutMs })).exitCode === 0;
}
