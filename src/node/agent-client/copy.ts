import { syncPath, syncTree } from '../../base/sync.ts';
import { cpSync, existsSync, linkSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { systemCodeOf } from '../../base/error.ts';

/** The name of a copy that is not complete yet. */
const copying = 'copying';
/** How many earlier copies are kept although nothing here runs from them. */
const othersKept = 2;

/**
 * Keeps a copy of the built agent under the node's data and answers its directory. Sandboxes run from the copy:
 * building the agent anew must not pull it from under them.
 */
export async function keepAgent(built: string, agents: string): Promise<string> {
  const kept = join(agents, fingerprintOf(built));
  if (existsSync(kept)) return kept;
  const temporary = join(agents, copying);
  rmSync(temporary, { recursive: true, force: true });
  mkdirSync(agents, { recursive: true });
  keepFiles(built, temporary);
  // From now on its name means that it is complete, even after a loss of power.
  await syncTree(temporary);
  renameSync(temporary, kept);
  await syncPath(agents);
  return kept;
}

/**
 * Keeps a built file, or a whole folder, under another name. Hard links cost nothing; on another disk, where there are
 * none, the files are copied. Set-up replaces files, so the copies do not change.
 */
export function keepFiles(path: string, at: string): void {
  if (statSync(path).isDirectory()) {
    mkdirSync(at);
    for (const name of readdirSync(path)) keepFiles(join(path, name), join(at, name));
    return;
  }
  try {
    linkSync(path, at);
  } catch (error) {
    if (!['EXDEV', 'EPERM', 'EMLINK', 'ENOTSUP'].includes(systemCodeOf(error))) throw error;
    cpSync(path, at, { preserveTimestamps: true });
  }
}

/** Where a recorded copy is now: the data directory may have been elsewhere when the record was written. */
export const agentAt = (agents: string, recorded: string): string => join(agents, basename(recorded));

/**
 * Removes the copies that are not `inUse`, except for the latest few: while the machines of a cluster are updated one
 * after another, memory that began with one of them may still arrive.
 */
export function forgetOtherAgents(agents: string, inUse: string[]): void {
  const others = readdirSync(agents)
    .map(name => join(agents, name))
    .filter(path => !inUse.includes(path));
  const byAge = others.filter(isWhole).toSorted((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
  const kept = byAge.slice(0, othersKept);
  for (const path of others) if (!kept.includes(path)) rmSync(path, { recursive: true, force: true });
}

const isWhole = (path: string) => basename(path) !== copying;

/**
 * Tells one build of a program, or of a program's directory, from another. A directory counts by its name alone: when
 * files are linked to another place, the directories there are new.
 */
export function fingerprintOf(path: string): string {
  const names = statSync(path).isDirectory() ? readdirSync(path, { recursive: true, encoding: 'utf8' }) : [''];
  const facts = names.sort().map(name => {
    const stats = statSync(join(path, name));
    return stats.isDirectory() ? name : `${name} ${stats.size} ${stats.mtimeMs}`;
  });
  return Bun.hash(facts.join('\n')).toString(16);
}
