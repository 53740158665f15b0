import { AtollError } from '../../../base/error.ts';
import { setSandboxEnd } from '../store/state.ts';
import { microsPerSecond } from '../../../base/clock.ts';
import { sandboxFor, sandboxMoved } from './find.ts';
import type { SandboxRecord } from '../record.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { LimitsOf } from '../../team/rules/limits.ts';
import type { Db } from '../../database/db.ts';
import type { SandboxDirectory } from '../directory/directory.ts';
import type { Clock } from '../../../base/clock.ts';

/** Dependencies of changing the end of a sandbox. */
export type TimeoutDeps = { clock: Clock; db: Db; directory: SandboxDirectory; limitsOf: LimitsOf };

/** Refuses a lifetime beyond the team's maximum, and a lifetime of zero where `min` is 1 (`invalid`). */
export function checkTimeout(limitsOf: LimitsOf, team: TeamRecord, seconds: number, min: 0 | 1 = 1): void {
  const { lifetimeHours } = limitsOf(team);
  if (seconds < min) throw new AtollError('invalid', 'timeout: must be greater than 0 seconds');
  if (seconds > lifetimeHours * 3600) {
    throw new AtollError(
      'invalid',
      `timeout: ${seconds} seconds is longer than the team's maximum of ${lifetimeHours} hours`,
    );
  }
}

/** A sandbox before and after a change. */
type Changed = { before: SandboxRecord; after: SandboxRecord };

/**
 * Makes a running sandbox expire `seconds` from now, whether that is sooner or later than before; 0 ends it at once.
 */
export async function setTimeoutOf(
  deps: TimeoutDeps,
  team: TeamRecord,
  sandboxId: string,
  seconds: number,
): Promise<Changed> {
  checkTimeout(deps.limitsOf, team, seconds, 0);
  const before = await sandboxFor(deps.db, team, sandboxId, 'setTimeout');
  return { before, after: await setEnd(deps, team, before, seconds, false) };
}

/** Keeps a running sandbox alive for at least `seconds` from now. */
export async function refreshSandbox(
  deps: TimeoutDeps,
  team: TeamRecord,
  sandboxId: string,
  seconds: number,
): Promise<Changed> {
  const before = await sandboxFor(deps.db, team, sandboxId, 'refresh');
  return { before, after: await setEnd(deps, team, before, seconds, true) };
}

/**
 * Sets when a running sandbox expires, never beyond its start plus the team's longest lifetime.
 * Throws `conflict` when the sandbox left the state `running` meanwhile.
 */
export async function setEnd(
  { clock, db, directory, limitsOf }: TimeoutDeps,
  team: TeamRecord,
  sandbox: SandboxRecord,
  seconds: number,
  onlyLater: boolean,
): Promise<SandboxRecord> {
  const capUs = sandbox.startedAtUs + limitsOf(team).lifetimeHours * 3600 * microsPerSecond;
  const nowUs = clock();
  const endAtUs = Math.min(nowUs + seconds * microsPerSecond, capUs);
  const changed = await setSandboxEnd(db, sandbox, { endAtUs, onlyLater, nowUs });
  if (!changed) throw sandboxMoved(sandbox.sandboxId);
  directory.apply(changed);
  return changed;
}
