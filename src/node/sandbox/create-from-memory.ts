import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import type { CreateSandbox } from '../../protocol/node.ts';
import { initAgent } from '../agent-call.ts';
import { pathInHelper } from '../native/helper.ts';
import type { NodeContext, Running } from '../context.ts';
import { diskFile } from '../snapshot/manifest.ts';
import { openSnapshot, type OpenSnapshot } from '../snapshot/restore.ts';
import { freshEntropy, requireMemory } from './memory.ts';
import { volumesOf } from './mount-volumes.ts';
import { originFile, originText } from './origin.ts';
import { startTicksOf, type RunningRecord } from './record.ts';
import { releaseBlank } from './remove.ts';
import { restoreBlank } from './restore-blank.ts';
import { snapshotOf, type SnapshotFacts } from './snapshot.ts';

const copyTimeoutMs = 10 * 60_000;

/**
 * Makes a sandbox that begins with the processes of a snapshot. Its ID, tokens, environment and random numbers are its own.
 * A failed one leaves its files, for the caller to remove. Errors: `not_found`, `precondition`, `internal`, `unavailable`.
 */
export async function createFromMemory(node: NodeContext, request: CreateSandbox, snapshotId: string, options: { notesOrigin?: boolean } = {}): Promise<Running> {
  const { sandboxId, executionId, resources, network } = request;
  const snapshot = await verified(node, snapshotId);
  // Only takeSnapshot writes them.
  const facts = snapshot.manifest.facts as SnapshotFacts;
  const { agentDir, bootId, controlToken } = facts;
  node.records.keptOf(sandboxId);
  const disk = node.records.diskOf(sandboxId);
  const keptDisk = join(snapshot.directory, diskFile);
  const hasDisk = existsSync(keptDisk);
  const image = hasDisk ? { ...request.image, layers: facts.layers } : request.image;
  const layers = await Promise.all(image.layers.map(digest => node.layers.mount(digest)));
  if (hasDisk) await copyOfDisk(node, keptDisk, disk);
  else await makeBareDisk(node, disk, sandboxId, resources.diskMiB);
  if (hasDisk && options.notesOrigin) await noteOrigin(node, disk, request);
  const blank = await restoreBlank(node, { sandboxId, snapshot, disk, layers, resources, network, agentDir, bootId, controlToken, ...volumesOf(request) });
  try {
    const caBundle = node.egress.trusted(network);
    await initAgent(blank.namespace, controlToken, {
      envVars: request.envVars,
      accessToken: request.accessToken,
      timestamp: new Date().toISOString(),
      entropy: freshEntropy(),
      logOutput: node.logOutput,
      ...(caBundle !== undefined && { caBundle }),
    });
    const startTicks = startTicksOf(blank.pid);
    if (startTicks === undefined) throw new AtollError('internal', 'the sandbox ended while it was started');
    const place = { slot: blank.slot.number, pid: blank.pid, startTicks };
    const record: RunningRecord = { state: 'running', sandboxId, executionId, ...place, controlToken, bootId, startedAtMs: Date.now(), resources, network, image, agentDir, driver: 'crun', ...volumesOf(request) };
    await node.records.write(record);
    return { record, namespace: blank.namespace, ended: blank.ended };
  } catch (error) {
    await releaseBlank(node, blank);
    throw error;
  }
}

/** Those who begin with a snapshot at the same time check it once. */
function verified(node: NodeContext, snapshotId: string): Promise<OpenSnapshot> {
  const known = node.openingSnapshots.get(snapshotId);
  if (known) return known;
  const opening = openSnapshot(requireMemory(node), snapshotOf(node, snapshotId)).finally(() => node.openingSnapshots.delete(snapshotId));
  node.openingSnapshots.set(snapshotId, opening);
  return opening;
}

/** The disk that the processes had, every file with the inode that they know. */
async function copyOfDisk(node: NodeContext, from: string, to: string): Promise<void> {
  const { status, output } = await node.helper.spawn(['cp', '--reflink=auto', '--sparse=auto', from, to], { timeoutMs: copyTimeoutMs });
  if (status !== 0) throw new AtollError(/No space left/.test(output) ? 'no_space' : 'internal', `the snapshot's disk can't be copied: ${output.trim()}`);
}

/** Says on a disk which build its sandbox was made from. */
async function noteOrigin(node: NodeContext, disk: string, { sandboxId, image }: CreateSandbox): Promise<void> {
  const mountPoint = join(node.layout.mounts, `origin-${sandboxId}`);
  await node.disks.open(disk, mountPoint);
  try {
    const file = join(pathInHelper(node, mountPoint), 'upper', originFile);
    await rm(file, { recursive: true, force: true }); // whatever the start command has put there, however much
    writeFileSync(file, originText(image), { mode: 0o644, flag: 'wx' });
  } finally {
    await node.disks.close(mountPoint);
  }
}

/** A disk with nothing on it: what every new one has would hide what the processes know. */
async function makeBareDisk(node: NodeContext, image: string, sandboxId: string, diskMiB: number): Promise<void> {
  const mountPoint = join(node.layout.mounts, `bare-${sandboxId}`);
  await node.disks.create(image, diskMiB, mountPoint);
  try {
    const upper = join(pathInHelper(node, mountPoint), 'upper');
    for (const name of readdirSync(upper)) rmSync(join(upper, name), { recursive: true });
  } finally {
    await node.disks.close(mountPoint);
  }
}
