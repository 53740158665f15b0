import { unlessAborted } from '../../../base/concurrency/unless-aborted.ts';
import { isSandboxId } from '../../../base/id.ts';
import type { DirectoryProtocol, Route } from '../../../protocol/directory.ts';
import { kindOf } from '../../database/db.ts';
import { findSandboxOfAnyTeam } from '../store/read.ts';
import { wakeSandbox } from './wake.ts';
import type { ResumeDeps } from './resume/resume.ts';

/** Answers the edge's requests from the directory of sandboxes. */
export function directoryFor(deps: ResumeDeps): Omit<DirectoryProtocol, 'report' | 'way'> {
  return {
    changes: (after, waitMs, signal) => deps.directory.changes(after, waitMs, signal),
    find: async sandboxId => deps.directory.find(sandboxId) ?? (await findAnew(deps, sandboxId)),
    wake(sandboxId, signal) {
      const woken = wakeSandbox(deps, sandboxId);
      return signal ? unlessAborted(woken, signal, 'Nobody waits for the answer any more.') : woken;
    },
  };
}

/** Where several processes share the database, another one may have made it a moment ago. */
async function findAnew({ db, directory }: ResumeDeps, sandboxId: string): Promise<Route | null> {
  if (kindOf(db) === 'sqlite' || !isSandboxId(sandboxId)) return null;
  const sandbox = await findSandboxOfAnyTeam(db, sandboxId);
  // What the directory has learnt meanwhile is newer.
  if (sandbox && !directory.find(sandboxId)) directory.apply(sandbox);
  return directory.find(sandboxId) ?? null;
}
