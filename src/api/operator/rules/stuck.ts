import { type Clock, microsPerSecond } from '../../../base/clock.ts';
import { sandboxStates } from '../../../protocol/state.ts';
import type { Db } from '../../database/db.ts';
import type { SandboxRecord } from '../../sandbox/record.ts';
import { sandboxesIn } from '../../sandbox/store/read.ts';

/** A change that takes longer needs somebody's attention: most take well under a second. */
export const stuckSeconds = 60;
/** How often it looks for such changes, milliseconds. */
export const stuckIntervalMs = 10_000;

const changing = sandboxStates.filter(state => state !== 'running' && state !== 'paused');

type Changing = Pick<SandboxRecord, 'sandboxId' | 'executionId' | 'teamId' | 'nodeId' | 'state'>;

/** A sandbox that has been in transition for too long: at least since this time. */
type StuckSandbox = Changing & { sinceUs: number };

/** Remembers since when each sandbox has been seen in transition. It starts empty with the process. */
export class ChangeWatch {
  #seen = new Map<string, StuckSandbox>();

  look(sandboxes: readonly Changing[], nowUs: number): void {
    const before = this.#seen;
    this.#seen = new Map(
      sandboxes.map(({ sandboxId, executionId, teamId, nodeId, state }) => {
        const key = `${executionId} ${state}`;
        const sinceUs = before.get(key)?.sinceUs ?? nowUs;
        return [key, { sandboxId, executionId, teamId, nodeId, state, sinceUs }];
      }),
    );
  }

  stuckAt(nowUs: number): StuckSandbox[] {
    const latestUs = nowUs - stuckSeconds * microsPerSecond;
    return [...this.#seen.values()].filter(({ sinceUs }) => sinceUs <= latestUs).sort((a, b) => a.sinceUs - b.sinceUs);
  }
}

/** Dependencies of looking for stuck sandboxes. */
export type StuckDeps = { clock: Clock; db: Db; changes: ChangeWatch };

/** Looks once at the sandboxes in transition. */
export async function watchChanges({ clock, db, changes }: StuckDeps): Promise<void> {
  changes.look(await sandboxesIn(db, changing), clock());
}

/** The sandboxes that are stuck now: watched for long without any progress. */
export async function stuckSandboxes(deps: StuckDeps): Promise<StuckSandbox[]> {
  await watchChanges(deps);
  return deps.changes.stuckAt(deps.clock());
}
