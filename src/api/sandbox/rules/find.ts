import { AtollError } from '../../../base/error.ts';
import { verdictOn } from '../../../protocol/state.ts';
import type { SandboxOperation, SandboxState } from '../../../protocol/state.ts';
import { findSandbox } from '../store/read.ts';
import type { SandboxRecord } from '../record.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { Db } from '../../database/db.ts';

const idPattern = /^[a-z0-9]+$/;

/** The sandbox's ID from a path parameter: `<id>`, or `<id>-<clientID>` of old clients. Throws `invalid`. */
export function parseSandboxId(text: string): string {
  const [id = '', , ...more] = text.split('-');
  if (more.length === 0 && idPattern.test(id)) return id;
  throw new AtollError('invalid', `sandboxID: "${text}" is not a sandbox ID: expected lowercase letters and digits`);
}

/** Unknown, foreign and past sandboxes get the same answer. */
export function sandboxNotFound(sandboxId: string): AtollError {
  return new AtollError('not_found', `Sandbox "${sandboxId}" was not found`);
}

/** Clients expect a running sandbox, and take any other answer for a fault. */
function notRunning(sandboxId: string): AtollError {
  return new AtollError('not_found', `Sandbox "${sandboxId}" is paused, and not found among those that run: resume it`);
}

/** The sandbox was as wanted when it was read, but no longer at the change. */
export function sandboxMoved(sandboxId: string): AtollError {
  return new AtollError('conflict', `Sandbox "${sandboxId}" is changing its state: ask again`);
}

/**
 * The team's sandbox in a state that allows `operation`, or in which the operation has to `wait`. Throws `not_found`
 * and `conflict` as the state table says, `invalid` for a text that is not an ID.
 */
export async function sandboxFor(
  db: Db,
  team: TeamRecord,
  idText: string,
  operation: SandboxOperation,
): Promise<SandboxRecord> {
  const sandboxId = parseSandboxId(idText);
  const sandbox = await findSandbox(db, team.teamId, sandboxId);
  if (!sandbox) throw sandboxNotFound(sandboxId);
  const verdict = verdictOn(operation, sandbox.state);
  if (verdict === 'not_found') throw sandbox.state === 'paused' ? notRunning(sandboxId) : sandboxNotFound(sandboxId);
  if (verdict === 'conflict')
    throw new AtollError('conflict', `Sandbox "${sandboxId}" is ${conflictWords[sandbox.state]}`);
  return sandbox;
}

const conflictWords: Record<SandboxState, string> = {
  starting: 'starting',
  running: 'running already',
  pausing: 'being paused',
  paused: 'paused',
  resuming: 'being resumed',
  snapshotting: 'being snapshotted',
  moving: 'being moved to another machine',
  killing: 'being removed',
};
