import { AtollError, messageOf } from '../../../base/error.ts';
import type { ExecutionRef, PausedSandbox, SetAsideSandbox } from '../../../protocol/node.ts';
import type { PausedRecord, RunningRecord } from '../records/record.ts';
import type { Paused } from '../state/sandbox-state.ts';
import type { Sandboxes } from '../state/sandboxes.ts';
import { endUnreadable, killSandbox, type KillParts } from './end.ts';
import { dropFrozen } from './frozen.ts';
import { pausedSummaryOf, pauseSandbox, type PauseParts } from './pause.ts';

/** Stops a sandbox that nobody answers for, and keeps what it has, including its memory if possible. */
export async function setAside(parts: PauseParts, target: ExecutionRef, reason: string): Promise<void> {
  const { sandboxes, log } = parts;
  const { sandboxId } = target;
  const state = sandboxes.get(sandboxId);
  if (state?.kind === 'running' && state.record.executionId === target.executionId)
    await pauseSandbox(parts, target, { memory: true }).catch((error: unknown) => {
      log.warn('the memory of a sandbox that is set aside is not kept', { sandboxId, error: messageOf(error) });
      return pauseSandbox(parts, target, { memory: false });
    });
  await sandboxes.inTurn(sandboxId, async () => {
    const found = sandboxes.findPaused(target);
    if (!found || found.record.setAside) return;
    const paused = found.kind === 'frozen' ? await dropFrozen(parts, found) : found;
    await mark(parts, paused, { atMs: Date.now(), reason });
    log.warn('a sandbox that the store does not know is set aside; `atoll sandbox orphans` lists it', { sandboxId });
  });
}

/** Makes a sandbox that was set aside an ordinary paused one again. Errors: `not_found`. */
export async function takeBack(parts: PauseParts, target: ExecutionRef): Promise<PausedSandbox> {
  const { sandboxes } = parts;
  return sandboxes.inTurn(target.sandboxId, async () => {
    const paused = sandboxes.findPaused(target);
    if (paused?.kind !== 'paused' || !paused.record.setAside) throw notSetAside(target.sandboxId);
    return pausedSummaryOf((await mark(parts, paused, null)).record);
  });
}

/** Marks the record. It is on the disk before anybody acts on it. */
async function mark(
  { sandboxes, records }: PauseParts,
  paused: Paused,
  setAside: PausedRecord['setAside'],
): Promise<Paused> {
  const record = { ...paused.record, setAside };
  await records.write(record);
  return sandboxes.transition(paused, { ...paused, record });
}

/** Every sandbox that is set aside: nobody answers for it, or nobody can say what it is. */
export function listSetAside(sandboxes: Sandboxes): SetAsideSandbox[] {
  return [...sandboxes.all()].flatMap(state => {
    const { sandboxId } = state;
    if (state.kind === 'unreadable') {
      const { record, sinceMs, reason } = state;
      return [{ sandboxId, known: record && knownOf(record), sinceMs, reason }];
    }
    const mark = state.kind === 'paused' ? state.record.setAside : null;
    if (state.kind !== 'paused' || !mark) return [];
    return [{ sandboxId, known: knownOf(state.record), sinceMs: mark.atMs, reason: mark.reason }];
  });
}

function knownOf(record: PausedRecord | RunningRecord): SetAsideSandbox['known'] {
  const { executionId, image, resources, startedAtMs, volumes } = record;
  return {
    executionId,
    kept: record.state === 'paused' ? record.kept : 'filesystem',
    image: { templateId: image.templateId, buildId: image.buildId },
    resources,
    volumes,
    startedAtMs,
  };
}

/** Removes a sandbox that was set aside, when an operator asks for it. Errors: `not_found`. */
export async function removeSetAside(parts: KillParts, sandboxId: string): Promise<void> {
  const { sandboxes } = parts;
  const state = sandboxes.get(sandboxId);
  if (state?.kind === 'paused' && state.record.setAside) return killSandbox(parts, state.record);
  await sandboxes.inTurn(sandboxId, async () => {
    const unreadable = sandboxes.get(sandboxId);
    if (unreadable?.kind !== 'unreadable') throw notSetAside(sandboxId);
    await endUnreadable(parts, unreadable);
  });
}

function notSetAside(sandboxId: string): AtollError {
  return new AtollError(
    'not_found',
    `Sandbox "${sandboxId}" is not set aside on this node; \`atoll sandbox orphans\` lists those that are`,
  );
}
