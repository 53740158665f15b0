import { createJournal } from '../../base/journal.ts';
import type { ExitsPage, ExitsPlace, SandboxExit } from '../../protocol/node.ts';

/** Ends that nobody has asked for are kept up to this many: far more than sandboxes can run. The api finds those beyond by comparing. */
const exitsMax = 10_000;

/** The sandboxes that ended by themselves, for the api to read; see `NodeProtocol.exits`. */
export type Exits = {
  note(exit: SandboxExit): void;
  read(after: ExitsPlace | null, waitMs: number, signal?: AbortSignal): Promise<ExitsPage>;
};

/** An empty list of ends. */
export function createExits(): Exits {
  const journal = createJournal<SandboxExit>(exitsMax);
  return {
    note: exit => journal.note(exit),
    async read(after, waitMs, signal) {
      const { items, next } = await journal.read(after, waitMs, signal);
      return { exits: items, next };
    },
  };
}
