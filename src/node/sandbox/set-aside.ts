import { AtollError } from '../../base/error.ts';
import type { ExecutionRef, PausedSandbox, SetAsideSandbox } from '../../protocol/node.ts';
import type { NodeContext, Paused } from '../context.ts';
import { inTurn } from './in-turn.ts';
import { killSandbox } from './kill.ts';
import { pausedOf, pausedSummaryOf, pauseSandbox } from './pause.ts';
import type { PausedRecord, RunningRecord } from './record.ts';
import { emptySlot } from './release.ts';

/** Stops a sandbox that nobody answers for, and keeps what it has. */
export async function setAside(node: NodeContext, target: ExecutionRef, reason: string): Promise<void> {
  if (node.running.get(target.sandboxId)?.record.executionId === target.executionId) await pauseSandbox(node, target, { memory: false });
  const paused = pausedOf(node, target);
  if (!paused || paused.record.setAside) return;
  await note(node, paused, { ...paused.record, setAside: { atMs: Date.now(), reason } });
  node.log.warn('a sandbox that the store does not know is set aside; `atoll sandbox orphans` lists it', { sandboxId: target.sandboxId });
}

/** It is a paused sandbox like any other again. Errors: `not_found`. */
export async function takeBack(node: NodeContext, target: ExecutionRef): Promise<PausedSandbox> {
  const paused = pausedOf(node, target);
  if (!paused?.record.setAside) throw notSetAside(target.sandboxId);
  const { setAside: _, ...record } = paused.record;
  await note(node, paused, record);
  return pausedSummaryOf(paused);
}

/** The record is on the disk before anybody acts on what it says. */
async function note(node: NodeContext, paused: Paused, record: PausedRecord): Promise<void> {
  await inTurn(paused, async () => {
    await node.records.write(record);
    paused.record = record;
  });
}

export function listSetAside(node: NodeContext): SetAsideSandbox[] {
  const paused = [...node.paused.values()].flatMap(({ record }) => {
    const { setAside: mark } = record;
    return mark ? [{ sandboxId: record.sandboxId, known: knownOf(record), sinceMs: mark.atMs, reason: mark.reason }] : [];
  });
  const unreadable = [...node.unreadable].map(([sandboxId, { record, sinceMs, reason }]) => ({ sandboxId, known: record ? knownOf(record) : null, sinceMs, reason }));
  return [...paused, ...unreadable];
}

function knownOf(record: PausedRecord | RunningRecord): SetAsideSandbox['known'] {
  const { executionId, image, resources, startedAtMs, volumes = [] } = record;
  return { executionId, kept: record.state === 'paused' ? record.kept : 'filesystem', image: { templateId: image.templateId, buildId: image.buildId }, resources, volumes, startedAtMs };
}

/** Removes a sandbox that was set aside, because an operator says so. Errors: `not_found`. */
export async function removeSetAside(node: NodeContext, sandboxId: string): Promise<void> {
  const paused = node.paused.get(sandboxId);
  if (paused?.record.setAside) return killSandbox(node, paused.record);
  const unreadable = node.unreadable.get(sandboxId);
  if (!unreadable) throw notSetAside(sandboxId);
  node.records.forget(sandboxId);
  if (unreadable.slot) await emptySlot(node, unreadable.slot);
  await node.records.remove(sandboxId);
  node.unreadable.delete(sandboxId);
}

function notSetAside(sandboxId: string): AtollError {
  return new AtollError('not_found', `Sandbox "${sandboxId}" is not set aside on this node; \`atoll sandbox orphans\` lists those that are`);
}
