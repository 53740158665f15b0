import { cpSync, existsSync, linkSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { systemCodeOf } from '../../base/error.ts';
import { syncPath, syncTree } from '../../base/sync.ts';
import { fingerprintOf } from '../../node/agent-client/copy.ts';

/** What a node starts again and again, and speaks with: each must be of its version. */
export type Programs = { agentDir: string; builderDir: string };

const folderOf = (dataDir: string): string => join(dataDir, 'node/built');

/**
 * Keeps the agent and the builder that set-up has built, and answers where: set-up may build others while this version
 * runs. Where they can't be kept, for there is no room, they are used where they are.
 */
export async function keepPrograms(dataDir: string, { agentDir, builderDir }: Programs): Promise<Programs> {
  const built = [agentDir, builderDir];
  const folder = folderOf(dataDir);
  const draft = join(folder, `making-${process.pid}`);
  try {
    const kept = join(folder, built.map(fingerprintOf).join('-'));
    if (!existsSync(kept)) {
      for (const directory of built) keep(directory, join(draft, basename(directory)));
      await syncTree(draft);
      renameSync(draft, kept);
      await syncPath(folder);
    }
    return { agentDir: join(kept, basename(agentDir)), builderDir: join(kept, basename(builderDir)) };
  } catch {
    // No room, most likely. A start on a full disk goes on, for sandboxes are there to be taken over.
    if (existsSync(draft)) rmSync(draft, { recursive: true });
    return { agentDir, builderDir };
  }
}

/** Removes what other versions kept. The data directory is this platform's. */
export function forgetOtherPrograms(dataDir: string, { agentDir }: Programs): void {
  const folder = folderOf(dataDir);
  for (const name of existsSync(folder) ? readdirSync(folder) : [])
    if (join(folder, name) !== dirname(agentDir)) rmSync(join(folder, name), { recursive: true, force: true });
}

/** A second name for each file costs nothing; on another disk there is none. Set-up replaces files, it changes none. */
function keep(directory: string, at: string): void {
  mkdirSync(at, { recursive: true });
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const [from, to] = [join(directory, entry.name), join(at, entry.name)];
    if (entry.isDirectory()) keep(from, to);
    else
      try {
        linkSync(from, to);
      } catch (error) {
        if (!['EXDEV', 'EPERM', 'EMLINK', 'ENOTSUP'].includes(systemCodeOf(error))) throw error;
        cpSync(from, to, { preserveTimestamps: true });
      }
  }
}
