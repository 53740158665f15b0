import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../base/error.ts';
import type { NodeContext, Paused, Running, Unreadable } from '../context.ts';
import { slotOf, type Slot } from '../layout.ts';
import type { NetworkNamespace } from '../native/netns.ts';
import { undoDump } from '../snapshot/checkpoint.ts';
import { watch } from './blank.ts';
import { inTurn } from './in-turn.ts';
import { isSealed, sealKept } from './kept.ts';
import { everyMemoryOf } from './memory.ts';
import { holdVolumes } from './mount-volumes.ts';
import { startTicksOf, type PausedRecord, type ProcessPlace, type RunningRecord, type SandboxRecord } from './record.ts';
import { releaseSlot } from './release.ts';
import { onEnded } from './remove.ts';
import { slotMountPoint } from './slot-disk.ts';

/**
 * Takes over the sandboxes that ran on while the platform did not and those that are paused, and removes whatever else is
 * there: the same code after a clean stop, after a crash, and after a reboot of the host.
 */
export async function adoptSandboxes(node: NodeContext): Promise<{ adopted: number; removed: number; paused: number }> {
  // All is read before anything is removed: what can't be looked at ends the start, and not a sandbox.
  const known = node.records.list().map(({ record, ...found }) => ({ ...found, record: record && ranOn(node, record) }));
  const alive = known.flatMap(({ record }) => (record?.state === 'running' && isAlive(record) ? [record] : []));
  const adopted: RunningRecord[] = [];
  for (const { sandboxId, damaged } of known) if (damaged !== undefined) noteUnreadable(node, sandboxId, { reason: `what the node has noted of it is damaged: ${damaged}` });
  for (const record of alive) if (await adopt(node, record)) adopted.push(record);
  const kept = [...node.unreadable.values()].flatMap(({ slot }) => slot?.number ?? []);
  const leftovers = [...leftoverSlots(node)].filter(number => !kept.includes(number) && !adopted.some(record => record.slot === number));
  for (const number of leftovers) await releaseLeftover(node, node.slots.occupy(number));
  for (const { record } of known) if (record?.state === 'paused') adoptPaused(node, record);
  const stays = (sandboxId: string) => node.running.has(sandboxId) || node.paused.has(sandboxId) || node.unreadable.has(sandboxId);
  for (const { sandboxId } of known) if (!stays(sandboxId)) await node.records.remove(sandboxId);
  return { adopted: adopted.length, removed: leftovers.length, paused: node.paused.size };
}

/** What can't be removed now is tried again behind the start: it holds its slot and nobody else. */
async function releaseLeftover(node: NodeContext, slot: Slot): Promise<void> {
  try {
    await releaseSlot(node, slot);
  } catch (error) {
    node.log.warn('what a sandbox has left is removed later', { slot: slot.name, error: messageOf(error) });
    node.releases.begin(slot.name, () => releaseSlot(node, slot));
  }
}

function noteUnreadable(node: NodeContext, sandboxId: string, facts: Pick<Unreadable, 'reason' | 'slot' | 'record'>): void {
  node.unreadable.set(sandboxId, { sinceMs: Date.now(), ...facts });
  node.log.error('a sandbox can’t be taken over and is set aside; `atoll sandbox orphans` lists it', { sandboxId, reason: facts.reason });
}

/**
 * What a record says after a crash. A pause is noted while its processes are held by the checkpoint; a crash at that very
 * moment lets them go again, and as nobody was told of the pause, the sandbox has simply run on.
 */
function ranOn(node: NodeContext, record: SandboxRecord): SandboxRecord {
  if (record.state === 'running' || !record.standing || !isAlive(record.standing)) return record;
  if (node.driver.isFrozen(slotOf(node.layout.installation, record.standing.slot))) return record;
  const { standing, kept: _kept, pausedAtMs: _pausedAtMs, ...rest } = record;
  return { ...rest, ...standing, state: 'running' };
}

function isAlive({ pid, startTicks }: ProcessPlace): boolean {
  return startTicksOf(pid) === startTicks;
}

/** What a crash kept from its end is done now: its processes are gone by now, like those of any leftover slot. */
function adoptPaused(node: NodeContext, record: PausedRecord): void {
  const { standing: _, ...rest } = record;
  const paused: Paused = { record: rest };
  node.paused.set(record.sandboxId, paused);
  for (const directory of everyMemoryOf(node, record.sandboxId).slice(1)) rmSync(directory, { recursive: true, force: true });
  if (isSealed(node, record.sandboxId)) return;
  inTurn(paused, () => sealKept(node, record.sandboxId)).catch(error => {
    node.log.error('a paused sandbox could not be sealed', { sandboxId: record.sandboxId, error: messageOf(error) });
  });
}

/**
 * Answers false where the sandbox ended while it was looked at: what is left of it is a leftover like any other. One that can't be taken
 * over though it runs keeps its slot and its files, for the next start or the operator.
 */
async function adopt(node: NodeContext, record: RunningRecord): Promise<boolean> {
  const place = slotOf(node.layout.installation, record.slot);
  let namespace: NetworkNamespace | undefined;
  try {
    namespace = node.driver.openNetwork(place, record.pid);
    const { ended } = await watch(node, place, record.pid);
    const running: Running = { record, namespace, ended, policyInForce: record.network };
    await prepare(node, record);
    const slot = node.slots.occupy(record.slot);
    // A pause or snapshot that a crash cut off has never come to its end.
    node.driver.thaw(slot);
    await undoCutOff(node, slot, record.pid);
    node.egress.adopt({ sandboxId: record.sandboxId, slot, namespace }, record.network);
    node.running.set(record.sandboxId, running);
    onEnded(node, running);
    node.logs.follow(running);
    return true;
  } catch (error) {
    namespace?.close();
    if (isAlive(record)) {
      node.running.delete(record.sandboxId);
      noteUnreadable(node, record.sandboxId, { reason: `it runs and could not be taken over: ${messageOf(error)}`, slot: place, record });
      return false;
    }
    node.log.warn('a sandbox ended while it was taken over', { sandboxId: record.sandboxId, error: messageOf(error) });
    return false;
  }
}

/** Of a checkpoint whose CRIU was killed with the platform, the files of its run are still there. */
async function undoCutOff(node: NodeContext, slot: Slot, pid: number): Promise<void> {
  const { run } = node.layout;
  const runs = readdirSync(run).filter(name => name.endsWith(`-${slot.name}.conf`));
  if (runs.length === 0) return;
  const group = { freeze: () => node.driver.freeze(slot), hold: () => node.driver.hold(slot), thaw: () => node.driver.thaw(slot), processes: () => node.driver.processes(slot) };
  await undoDump({ ...node, runDir: run }, { pid, group }, `undo-${slot.name}`);
  for (const name of runs) rmSync(join(run, name), { force: true });
}

/** What fails here is no reason to end a sandbox that runs. */
async function prepare(node: NodeContext, record: RunningRecord): Promise<void> {
  try {
    // In the new helper's namespace its disk is mounted nowhere yet, and a pause writes it out by its mount.
    await node.disks.open(node.records.diskOf(record.sandboxId), slotMountPoint(node, slotOf(node.layout.installation, record.slot)));
    await holdVolumes(node, slotOf(node.layout.installation, record.slot), record.volumes ?? []);
    for (const directory of everyMemoryOf(node, record.sandboxId)) rmSync(directory, { recursive: true, force: true });
    await node.records.write(record);
  } catch (error) {
    node.log.error('a sandbox that was taken over can’t be paused', { sandboxId: record.sandboxId, error: messageOf(error) });
  }
}

function leftoverSlots(node: NodeContext): Set<number> {
  const prefix = slotOf(node.layout.installation, 0).interfaceName.slice(0, -1);
  const links = readdirSync('/sys/class/net').filter(name => name.startsWith(prefix));
  const disks = readdirSync(node.layout.disks).flatMap(name => /^s(\d+)\.img$/.exec(name)?.[1] ?? []);
  return new Set([...node.driver.leftovers(), ...disks.map(Number), ...links.map(name => Number(name.slice(prefix.length)))]);
}
