import type { BuilderJob, Looked } from '../protocol/builder.ts';
import { readAccounts } from './accounts.ts';
import { openRoot } from './layer/root.ts';
import { shownAs } from './shown.ts';

/** Looks into layers as a program inside would. */
export function look(job: BuilderJob & { kind: 'look' }): Looked {
  using view = openRoot(shownAs.view);
  const isFile = (path: string): boolean => {
    const found = view.follow(Buffer.from(path).toString('latin1'));
    return found !== undefined && view.stat(found)?.isFile() === true;
  };
  const account = readAccounts(view).user(job.user);
  return { files: job.files.map(isFile), user: { home: account?.home ?? '/', known: account !== undefined } };
}
