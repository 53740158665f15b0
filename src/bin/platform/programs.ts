import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { syncPath, syncTree } from '../../base/sync.ts';
import { fingerprintOf, keepFiles } from '../../node/agent-client/copy.ts';

/**
 * Programs that a node starts again and again and talks to, so each must be of the node's version. Beside the helper
 * are the libraries that runtimes preload, and the system call filter.
 */
export type Programs = { helperBinary: string; agentDir: string; builderDir: string };

/** Files beside the helper that belong to it. */
const besideHelper = ['criu-without-tls.so', 'namespace-owner.so', 'seccomp'];

const folderOf = (dataDir: string): string => join(dataDir, 'node/built');

/**
 * Keeps copies of the helper, the agent and the builder that set-up has built, and answers where they are: set-up may
 * build others while this version runs. If there is no room for copies, the originals are used.
 */
export async function keepPrograms(dataDir: string, programs: Programs): Promise<Programs> {
  const { helperBinary, agentDir, builderDir } = programs;
  const built = [helperBinary, ...besideHelper.map(name => join(dirname(helperBinary), name)), agentDir, builderDir];
  const folder = folderOf(dataDir);
  const draft = join(folder, `making-${process.pid}`);
  try {
    const kept = join(folder, Bun.hash(built.map(path => fingerprintOf(path)).join('-')).toString(16));
    if (!existsSync(kept)) {
      mkdirSync(draft, { recursive: true });
      for (const path of built) keepFiles(path, join(draft, basename(path)));
      await syncTree(draft);
      renameSync(draft, kept);
      await syncPath(folder);
    }
    const at = (path: string) => join(kept, basename(path));
    return { helperBinary: at(helperBinary), agentDir: at(agentDir), builderDir: at(builderDir) };
  } catch {
    // Most likely there is no room. A start on a full disk goes on, because there are sandboxes to take over.
    if (existsSync(draft)) rmSync(draft, { recursive: true });
    return programs;
  }
}

/** Removes what other versions kept. The data directory must be this platform's. */
export function forgetOtherPrograms(dataDir: string, { agentDir }: Programs): void {
  const folder = folderOf(dataDir);
  for (const name of existsSync(folder) ? readdirSync(folder) : [])
    if (join(folder, name) !== dirname(agentDir)) rmSync(join(folder, name), { recursive: true, force: true });
}
