import { AtollError } from '../../base/error.ts';
import { setSandboxEnd } from '../store/sandbox-state.ts';
import type { SandboxRecord } from '../store/sandbox-row.ts';
import type { TeamRecord } from '../store/team.ts';
import { microsPerSecond } from './clock.ts';
import { limitsOf } from './context.ts';
import type { App } from './context.ts';
import { sandboxFor, sandboxMoved } from './sandbox-find.ts';

/** Refuses a lifetime beyond the team's maximum, and none at all where `min` is 1 (`invalid`). */
export function checkTimeout(app: App, team: TeamRecord, seconds: number, min: 0 | 1 = 1): void {
  const { lifetimeHours } = limitsOf(app, team);
  if (seconds < min) throw new AtollError('invalid', 'timeout: must be greater than 0 seconds');
  if (seconds > lifetimeHours * 3600) {
    throw new AtollError('invalid', `timeout: ${seconds} seconds is longer than the team's maximum of ${lifetimeHours} hours`);
  }
}

/** A sandbox before and after a change. */
export type Changed = { before: SandboxRecord; after: SandboxRecord };

/** Lets a running sandbox expire `seconds` from now, sooner or later than it would; 0 ends it at once. */
export async function setTimeoutOf(app: App, team: TeamRecord, sandboxId: string, seconds: number): Promise<Changed> {
  checkTimeout(app, team, seconds, 0);
  const before = await sandboxFor(app, team, sandboxId, 'setTimeout');
  return { before, after: await setEnd(app, team, before, seconds, false) };
}

/** Keeps a running sandbox alive for at least `seconds` from now. */
export async function refreshSandbox(app: App, team: TeamRecord, sandboxId: string, seconds: number): Promise<Changed> {
  const before = await sandboxFor(app, team, sandboxId, 'refresh');
  return { before, after: await setEnd(app, team, before, seconds, true) };
}

/**
 * Sets when a running sandbox expires, never beyond its start plus the team's longest lifetime.
 * Throws `conflict` when the sandbox left the state `running` meanwhile.
 */
export async function setEnd(
  app: App,
  team: TeamRecord,
  sandbox: SandboxRecord,
  seconds: number,
  onlyLater: boolean,
): Promise<SandboxRecord> {
  const capUs = sandbox.startedAtUs + limitsOf(app, team).lifetimeHours * 3600 * microsPerSecond;
  const nowUs = app.clock();
  const endAtUs = Math.min(nowUs + seconds * microsPerSecond, capUs);
  const changed = await setSandboxEnd(app.store.db, sandbox, { endAtUs, onlyLater, nowUs });
  if (!changed) throw sandboxMoved(sandbox.sandboxId);
  app.directory.apply(changed);
  return changed;
}
