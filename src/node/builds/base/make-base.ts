import { copyFile, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { extractArchiveTree } from './archive-tree.ts';
import { makeDebianTree, toolEnvironment } from './debian-tree.ts';
import { readBaseDefinition } from './definition.ts';
import { fetchNodeRuntime, placeNodeRuntime } from './node-runtime.ts';
import { runCommand } from './run-command.ts';

const provisionTimeoutMs = 10 * 60_000;

export type MakeBaseOptions = {
  /** Folder of the definition, `templates/base`. */
  definitionDir: string;
  /** An archive of a root filesystem to take as it is, instead of making one. */
  imageArchive?: string | undefined;
  /** Empty folder for the work, on the filesystem where layers are stored. The tree becomes `<workDir>/tree`. */
  workDir: string;
  /** Environment for npm: it may need the caller's own settings to reach its registry. */
  npmEnvironment: Record<string, string>;
  /** Called when something else begins to be done, in a few words. */
  onPhase: (phase: string) => void;
  signal?: AbortSignal | undefined;
};

/**
 * Makes the root filesystem of the `base` template as a tree owned by root with IDs counted from 0, and answers its path.
 * A tree that was asked for and failed leaves nothing below `workDir`.
 */
export async function makeBaseTree(options: MakeBaseOptions): Promise<string> {
  const { workDir, onPhase } = options;
  const treeDir = join(workDir, 'tree');
  const scratchDir = join(workDir, 'scratch');
  await mkdir(scratchDir, { recursive: true });
  try {
    if (options.imageArchive === undefined) await makeFromDefinition(options, treeDir, scratchDir);
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

async function makeFromDefinition(options: MakeBaseOptions, treeDir: string, scratchDir: string): Promise<void> {
  const { onPhase } = options;
  const definition = await readBaseDefinition(options.definitionDir);
  // One failing stops the other: a download that nobody waits for would outlive its folder.
  const failed = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, failed.signal]) : failed.signal;
  const stopBoth = (error: unknown) => {
    failed.abort();
    throw error;
  };
  const [node, tree] = await Promise.allSettled([
    fetchNodeRuntime(definition.npmDir, scratchDir, options.npmEnvironment, signal).catch(stopBoth),
    makeDebianTree({ packages: definition.packages, treeDir, scratchDir, onPhase, signal }).catch(stopBoth),
  ]);
  const failure = [tree, node].find(result => result.status === 'rejected' && !isAbort(result.reason)) ?? [tree, node].find(result => result.status === 'rejected');
  if (failure?.status === 'rejected') throw failure.reason;
  if (node.status === 'fulfilled') {
    onPhase('adding Node.js');
    await placeNodeRuntime(node.value, treeDir);
  }
  onPhase('setting up users and shells');
  await provision(definition.provisionScript, treeDir, options.signal);
}

/** Runs the definition's script inside the tree. Its packages come from the distribution, so the host's root runs them anyway. */
async function provision(script: string, treeDir: string, signal: AbortSignal | undefined): Promise<void> {
  const inside = join(treeDir, 'provision.sh');
  await copyFile(script, inside);
  await runCommand(['chroot', treeDir, '/bin/sh', '/provision.sh'], {
    sealedOff: true,
    cwd: '/',
    env: toolEnvironment,
    timeoutMs: provisionTimeoutMs,
    signal,
  });
  await rm(inside);
}

function isAbort(reason: unknown): boolean {
  return typeof reason === 'object' && reason !== null && 'code' in reason && reason.code === 'canceled';
}
