import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { forEachParallel } from '../../base/concurrency/parallel.ts';
import { messageOf } from '../../base/error.ts';
import { killIfThere } from '../../base/if-there.ts';
import { agentAt } from '../agent-client/copy.ts';
import type { Drivers } from '../drivers/drivers.ts';
import { slotOf, type Layout, type Slot } from '../layout.ts';
import type { Disks } from '../disks/disks.ts';
import type { Helper } from '../native/helper.ts';
import type { Egress } from '../network/egress/egress.ts';
import { runFile } from '../snapshot/criu.ts';
import { processesWith } from '../snapshot/criu-processes.ts';
import { forgetLaterBut } from '../snapshot/later-memory.ts';
import { forgetRestores, restoreName } from '../snapshot/restore.ts';
import { undoDump } from '../snapshot/undo-dump.ts';
import type { Volumes } from '../volumes/volumes.ts';
import { checkpointSource } from './keep/checkpoint-support.ts';
import type { KeptFiles } from './keep/kept.ts';
import { removeMemory, removeOldMemory } from './keep/memory-files.ts';
import { underChecksums } from './keep/under-checksums.ts';
import { endWithProcesses, type EndParts } from './lifecycle/end.ts';
import { followLogs, type FollowParts } from './lifecycle/follow-logs.ts';
import { pausedRecord, type PausedRecord, type RunningRecord, type SandboxRecord } from './records/record.ts';
import { requireOwnProcesses } from './records/own-processes.ts';
import type { Records } from './records/record-store.ts';
import { isAlive } from './records/start-ticks.ts';
import { holdVolumes } from './slot/mount-volumes.ts';
import type { ProcessControl, Processes } from './slot/processes.ts';
import { slotMountPoint } from './slot/slot-disk.ts';
import type { SlotHost } from './slot/slot-host.ts';
import type { Slots } from './slot/slots.ts';
import type { Paused, Running, Unreadable } from './state/sandbox-state.ts';

/**
 * How many sandboxes are taken over, or paused with their files, at a time: each waits for the disk and for the
 * helper.
 */
const takenOverAtOnce = 8;
/** How many leftovers are removed at a time: the kernel removes many namespaces in the time that one takes. */
const removedAtOnce = 32;

/** What adopting sandboxes needs. */
type AdoptParts = EndParts &
  FollowParts & {
    layout: Layout;
    helper: Helper;
    helperBinary: string;
    drivers: Drivers;
    disks: Disks;
    volumes: Volumes;
    egress: Egress;
    records: Records;
    kept: KeptFiles;
    slots: Slots;
    slotHost: SlotHost;
    processControl: ProcessControl;
    logs: EndParts['logs'] & FollowParts['logs'];
  };

/**
 * Takes over the sandboxes that ran on without the platform and those that are paused, keeps the files of those that
 * have lost their processes, and removes whatever else is there: by the same code after a clean stop, after a crash,
 * and after a reboot of the host.
 */
export async function adoptSandboxes(parts: AdoptParts): Promise<{ adopted: number; removed: number; paused: number }> {
  const { sandboxes, records, slots } = parts;
  // Everything is read before anything is removed: if something can't be read, the start fails and no sandbox ends.
  const known = recordedHere(parts).map(({ record, ...found }) => ({
    ...found,
    record: record && ranOn(parts, record),
  }));
  const ran = known.flatMap(({ record }) => (record?.state === 'running' ? [record] : []));
  const alive = ran.filter(record => isAlive(record) && !isHalfRestored(parts, record));
  for (const { sandboxId, damaged } of known)
    if (damaged !== undefined)
      addUnreadable(parts, {
        sandboxId,
        reason: `what the node has recorded of it is damaged: ${damaged}`,
        slot: null,
        record: null,
      });
  await forEachParallel(alive, takenOverAtOnce, record => adoptRunning(parts, record));
  await endCutOffRuns(parts.layout.run);
  const adopted = sandboxes.running();
  const used = new Set([
    ...adopted.map(({ processes }) => processes.slot.number),
    ...[...sandboxes.all()].flatMap(state => (state.kind === 'unreadable' && state.slot ? state.slot.number : [])),
  ]);
  const leftovers = [...leftoverSlots(parts)].filter(number => !used.has(number));
  await forEachParallel(leftovers, removedAtOnce, number => releaseNowOrLater(parts, slots.occupy(number)));
  forgetRestores(parts.layout.run);
  forgetLaterBut(parts.layout.run, new Set([...used].map(number => slotOf(parts.layout.installation, number).name)));
  for (const { record } of known) if (record?.state === 'paused') await adoptPaused(parts, record);
  const ended = ran.filter(({ sandboxId }) => !sandboxes.get(sandboxId));
  await forEachParallel(ended, takenOverAtOnce, record => keepFiles(parts, record));
  for (const { sandboxId } of known) if (!sandboxes.get(sandboxId)) await records.remove(sandboxId);
  return { adopted: adopted.length, removed: leftovers.length, paused: sandboxes.paused().length };
}

/**
 * Ends a CRIU that went on without the platform and whose sandbox has ended: it undoes nothing and may wait for the
 * sandbox.
 */
async function endCutOffRuns(run: string): Promise<void> {
  for (const name of readdirSync(run))
    if (name.endsWith('.conf')) for (const pid of await processesWith(join(run, name))) killIfThere(pid);
}

/** The records found here, wherever the data directory was when they were written. */
function recordedHere({ records, layout }: AdoptParts) {
  return records.list().map(({ record, ...found }) => {
    if (record) requireOwnProcesses(layout, record);
    return { ...found, record: record && { ...record, agentDir: agentAt(layout.agents, record.agentDir) } };
  });
}

/** Retries a removal that fails now after the start: until then it only holds its slot. */
async function releaseNowOrLater(parts: AdoptParts, slot: Slot): Promise<void> {
  // It is not known which driver has it.
  const release = () => parts.slotHost.release(slot, parts.drivers.keepersOf(slot.number));
  try {
    await release();
  } catch (error) {
    parts.log.warn('what a sandbox has left is removed later', { slot: slot.name, error: messageOf(error) });
    parts.cleanups.begin(slot.name, release);
  }
}

function addUnreadable({ sandboxes, log }: AdoptParts, facts: Omit<Unreadable, 'kind' | 'sinceMs'>): void {
  sandboxes.add<Unreadable>({ kind: 'unreadable', sinceMs: Date.now(), ...facts });
  log.error('a sandbox can’t be taken over and is set aside; `atoll sandbox orphans` lists it', {
    sandboxId: facts.sandboxId,
    reason: facts.reason,
  });
}

/**
 * What a record says after a crash. A pause is recorded while the checkpoint holds its processes; a crash at that very
 * moment lets them run again, and because nobody was told of the pause, the sandbox has simply run on.
 */
function ranOn({ drivers, layout }: AdoptParts, record: SandboxRecord): SandboxRecord {
  if (record.state === 'running' || !record.frozen || !isAlive(record.frozen)) return record;
  if (drivers.of(record.driver).isFrozen(slotOf(layout.installation, record.frozen.slot))) return record;
  const { frozen, kept: _kept, pausedAtMs: _pausedAtMs, setAside: _setAside, ...known } = record;
  return { ...known, ...frozen, state: 'running', resumedFrom: null };
}

/** Whether its restore was cut off: then nobody can say which of the processes that are there have run. */
const isHalfRestored = ({ layout }: AdoptParts, { slot }: RunningRecord) =>
  existsSync(runFile({ runDir: layout.run }, restoreName(slotOf(layout.installation, slot))));

/**
 * A sandbox whose processes ended with the host, in a restore that was cut off, or while nobody watched, still has its
 * files: it is paused with them. If it has none yet, its creation was never answered.
 */
async function keepFiles(parts: AdoptParts, running: RunningRecord): Promise<void> {
  const { records, log } = parts;
  const { sandboxId } = running;
  if (!existsSync(records.diskOf(sandboxId))) return;
  const record = pausedRecord(running, 'filesystem', null);
  await records.write(record);
  await removeMemory(records, sandboxId);
  await adoptPaused(parts, record);
  log.warn('a sandbox has lost its processes and is paused with its files', { sandboxId });
}

/** Finishes what a crash has interrupted: its processes are gone by now, like those of any leftover slot. */
async function adoptPaused(parts: AdoptParts, record: PausedRecord): Promise<void> {
  const { sandboxes, records, log } = parts;
  const { sandboxId } = record;
  const paused = sandboxes.add<Paused>({ kind: 'paused', sandboxId, record: { ...record, frozen: null } });
  await removeOldMemory(records, sandboxId);
  sandboxes
    .inTurn(sandboxId, () => underChecksums(parts, paused))
    .catch(error =>
      log.error('the checksums of a paused sandbox could not be written', { sandboxId, error: messageOf(error) }),
    );
}

/**
 * If a sandbox ended while it was looked at, its remains are a leftover like any other. A sandbox that runs but can't
 * be taken over keeps its slot and its files, for the next start or the operator.
 */
async function adoptRunning(parts: AdoptParts, record: RunningRecord): Promise<void> {
  const { sandboxes, drivers, processControl, slots, egress, log } = parts;
  const { sandboxId } = record;
  const place = slotOf(parts.layout.installation, record.slot);
  let processes: Processes | undefined;
  try {
    const driver = drivers.of(record.driver);
    processes = await processControl.watch(driver, place, record.pid);
    await prepare(parts, record);
    // A pause or snapshot that a crash cut off may have left it frozen.
    driver.thaw(place);
    await undoCutOff(parts, processes);
    egress.adopt({ sandboxId, slot: place, namespace: processes.namespace }, record.network);
    slots.occupy(record.slot);
    const running: Running = {
      kind: 'running',
      sandboxId,
      record,
      processes,
      policyInForce: record.network,
      diskFailed: false,
    };
    sandboxes.add(running);
    endWithProcesses(parts, running);
    followLogs(parts, running);
  } catch (error) {
    processes?.namespace.close();
    if (isAlive(record)) {
      slots.occupy(record.slot);
      addUnreadable(parts, {
        sandboxId,
        reason: `it runs and could not be taken over: ${messageOf(error)}`,
        slot: place,
        record,
      });
    } else log.warn('a sandbox ended while it was taken over', { sandboxId, error: messageOf(error) });
  }
}

/** Undoes a checkpoint whose CRIU was killed with the platform: the files of its run are still there. */
async function undoCutOff({ layout, helper, helperBinary }: AdoptParts, processes: Processes): Promise<void> {
  const { run } = layout;
  const { slot } = processes;
  const runs = readdirSync(run).filter(name => name.endsWith(`-${slot.name}.conf`));
  if (runs.length === 0) return;
  const source = checkpointSource(processes, { disk: '', diskMount: '', layers: [], volumes: [] });
  await undoDump({ helper, helperBinary, runDir: run }, source, `undo-${slot.name}`);
  for (const name of runs) rmSync(join(run, name), { force: true });
}

/** A failure here is no reason to end a sandbox that runs. */
async function prepare({ layout, disks, records, volumes, log }: AdoptParts, record: RunningRecord): Promise<void> {
  const { sandboxId } = record;
  const slot = slotOf(layout.installation, record.slot);
  try {
    // Its disk is not mounted yet in the new helper's namespace, and a pause writes the disk out by its mount.
    await disks.open(records.diskOf(sandboxId), slotMountPoint(layout, slot));
    await holdVolumes(volumes, slot, record.volumes);
    await removeMemory(records, sandboxId);
    await records.write(record);
  } catch (error) {
    log.error('a sandbox that was taken over can’t be paused', { sandboxId, error: messageOf(error) });
  }
}

function leftoverSlots({ layout, drivers }: AdoptParts): Set<number> {
  const prefix = slotOf(layout.installation, 0).interfaceName.slice(0, -1);
  const links = readdirSync('/sys/class/net').filter(name => name.startsWith(prefix));
  const disks = readdirSync(layout.disks).flatMap(name => /^s(\d+)\.img$/.exec(name)?.[1] ?? []);
  return new Set([
    ...drivers.leftovers(),
    ...disks.map(Number),
    ...links.map(name => Number(name.slice(prefix.length))),
  ]);
}
