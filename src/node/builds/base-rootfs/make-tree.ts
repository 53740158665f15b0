import { chmod, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runCommand } from '../../../base/process/command.ts';
import { extractArchiveTree } from './archive-tree.ts';
import { makeDebianTree, toolEnvironment } from './debian-tree.ts';
import type { BaseRootfsDefinition } from './definition.ts';
import { fetchNodeRuntime, placeNodeRuntime } from './node-runtime.ts';

const chmodTimeoutMs = 60_000;

/** A base rootfs to be made. */
type MakeTreeOptions = {
  definition: BaseRootfsDefinition;
  /** An archive of a root filesystem to take as it is, instead of making one. */
  imageArchive?: string | undefined;
  /** Empty folder for the work, on the filesystem where layers are stored. The tree becomes `<workDir>/tree`. */
  workDir: string;
  /** Environment for npm: it may need the caller's own settings to reach its registry. */
  npmEnvironment: Record<string, string>;
  /** Folder with Node.js, npm and yarn as npm would fetch them; without it, npm fetches them. */
  nodePackagesDir: string;
  /** Called at the start of each phase, with a few words about it. */
  onPhase: (phase: string) => void;
  signal?: AbortSignal | undefined;
};

/**
 * Makes a root filesystem of the distribution's packages and Node.js, as a tree owned by root with IDs counted from 0,
 * and answers its path. On failure nothing is left below `workDir`.
 */
export async function makeBaseRootfsTree(options: MakeTreeOptions): Promise<string> {
  const { workDir, onPhase } = options;
  const treeDir = join(workDir, 'tree');
  const scratchDir = join(workDir, 'scratch');
  await mkdir(scratchDir, { recursive: true });
  try {
    if (options.imageArchive === undefined) await makeFromPackages(options, treeDir, scratchDir);
    else {
      onPhase(`extracting ${options.imageArchive}`);
      await extractArchiveTree(options.imageArchive, treeDir, options.signal);
    }
    return treeDir;
  } catch (error) {
    await rm(treeDir, { recursive: true, force: true });
    throw error;
  } finally {
    await rm(scratchDir, { recursive: true, force: true });
  }
}

async function makeFromPackages(options: MakeTreeOptions, treeDir: string, scratchDir: string): Promise<void> {
  const { definition, onPhase } = options;
  // If one fails, the other is stopped: a download that nobody waits for would outlive its folder.
  const failed = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, failed.signal]) : failed.signal;
  const stopBoth = (error: unknown) => {
    failed.abort();
    throw error;
  };
  const [node, tree] = await Promise.allSettled([
    fetchNodeRuntime(
      { npmDir: definition.npmDir, scratchDir, env: options.npmEnvironment, brought: options.nodePackagesDir },
      signal,
    ).catch(stopBoth),
    makeDebianTree({ packages: definition.packages, treeDir, scratchDir, onPhase, signal }).catch(stopBoth),
  ]);
  const failure =
    [tree, node].find(result => result.status === 'rejected' && !isAbort(result.reason)) ??
    [tree, node].find(result => result.status === 'rejected');
  if (failure?.status === 'rejected') throw failure.reason;
  if (node.status === 'fulfilled') {
    onPhase('adding Node.js');
    await placeNodeRuntime(node.value, treeDir);
  }
  await tidyTree(treeDir);
  // Done here and not in a step of the build, which would copy the files once more.
  await runCommand(['chmod', '-R', 'a+rwX', join(treeDir, 'usr/local')], {
    env: toolEnvironment,
    timeoutMs: chmodTimeoutMs,
    signal: options.signal,
  });
}

/**
 * Removes what was needed only for making the tree, and what came from this machine; a sandbox mounts its own /dev and
 * /run.
 */
async function tidyTree(treeDir: string): Promise<void> {
  const emptied = [
    'dev',
    'run',
    'tmp',
    'var/tmp',
    'var/log',
    'var/cache/apt',
    'var/cache/debconf',
    'var/lib/apt/lists',
  ];
  for (const dir of emptied)
    for (const name of await readdir(join(treeDir, dir)).catch(() => []))
      await rm(join(treeDir, dir, name), { recursive: true, force: true });
  for (const dir of ['var/log/apt', 'var/lib/apt/lists/partial', 'var/cache/apt/archives/partial'])
    await mkdir(join(treeDir, dir), { recursive: true });
  await Promise.all(['tmp', 'var/tmp'].map(dir => chmod(join(treeDir, dir), 0o1777)));
  // A sandbox gets its own versions of the first three.
  const files = {
    'etc/hostname': 'sandbox\n',
    'etc/hosts': '127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost ip6-loopback\n',
    'etc/resolv.conf': 'nameserver 8.8.8.8\n',
    'etc/machine-id': '',
  };
  for (const [path, content] of Object.entries(files)) {
    await rm(join(treeDir, path), { force: true });
    await writeFile(join(treeDir, path), content, { mode: 0o644 });
  }
}

function isAbort(reason: unknown): boolean {
  return typeof reason === 'object' && reason !== null && 'code' in reason && reason.code === 'canceled';
}
