import { unlessAborted } from '../../base/unless-aborted.ts';
import type { DirectoryProtocol } from '../../protocol/directory.ts';
import type { App } from './context.ts';
import { wakeSandbox } from './sandbox-wake.ts';

/** What the edge asks, answered from the directory of sandboxes. */
export function directoryFor(app: App): Omit<DirectoryProtocol, 'report'> {
  return {
    changes: (after, waitMs, signal) => app.directory.changes(after, waitMs, signal),
    find: async sandboxId => app.directory.find(sandboxId) ?? null,
    wake(sandboxId, signal) {
      const woken = wakeSandbox(app, sandboxId);
      return signal ? unlessAborted(woken, signal, 'Nobody waits for the answer any more.') : woken;
    },
  };
}
