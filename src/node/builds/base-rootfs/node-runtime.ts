import { existsSync } from 'node:fs';
import { cp, copyFile, mkdir, rename, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { runCommand } from '../../../base/process/command.ts';

const installTimeoutMs = 15 * 60_000;

/**
 * Fetches Node.js, npm and yarn in the versions that `npmDir`'s lock file pins, through this machine's npm, into
 * `<scratchDir>/npm`; if `brought` is a folder that has them, copies them from there. Answers the folder that
 * `placeNodeRuntime` takes them from.
 */
export async function fetchNodeRuntime(
  {
    npmDir,
    scratchDir,
    env,
    brought,
  }: { npmDir: string; scratchDir: string; env: Record<string, string>; brought: string },
  signal?: AbortSignal,
): Promise<string> {
  const dir = join(scratchDir, 'npm');
  if (existsSync(brought)) {
    await cp(brought, join(dir, 'node_modules'), { recursive: true });
    return join(dir, 'node_modules');
  }
  await cp(npmDir, dir, { recursive: true });
  // Install scripts stay off: the packages are only unpacked here, on the host, which needs none.
  await runCommand(['npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: dir,
    env,
    timeoutMs: installTimeoutMs,
    signal,
  });
  return join(dir, 'node_modules');
}

/** Puts Node.js, npm and yarn of `modulesDir` under `/usr/local` of the tree, as the official archives lay them out. */
export async function placeNodeRuntime(modulesDir: string, treeDir: string): Promise<void> {
  const local = join(treeDir, 'usr/local');
  const bin = join(local, 'bin');
  const globalModules = join(local, 'lib/node_modules');
  await mkdir(bin, { recursive: true });
  await mkdir(globalModules, { recursive: true });
  const machine = process.arch === 'arm64' ? 'arm64' : 'x64';
  await copyFile(join(modulesDir, `node-linux-${machine}`, 'bin/node'), join(bin, 'node'));
  for (const name of ['npm', 'yarn']) {
    const target = join(globalModules, name);
    await rm(target, { recursive: true, force: true });
    // The scratch folder and the tree are on one filesystem.
    await rename(join(modulesDir, name), target);
  }
  await symlink('node', join(bin, 'nodejs'));
  await symlink('../lib/node_modules/npm/bin/npm-cli.js', join(bin, 'npm'));
  await symlink('../lib/node_modules/npm/bin/npx-cli.js', join(bin, 'npx'));
  await symlink('../lib/node_modules/yarn/bin/yarn.js', join(bin, 'yarn'));
  await symlink('../lib/node_modules/yarn/bin/yarn.js', join(bin, 'yarnpkg'));
}
