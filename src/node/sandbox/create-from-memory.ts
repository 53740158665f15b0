import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import type { CreateSandbox } from '../../protocol/node.ts';
import { initAgent } from '../agent-call.ts';
import { pathInHelper } from '../builds/layer/make-layer.ts';
import type { NodeContext, Running } from '../context.ts';
import { openSnapshot, type OpenSnapshot } from '../snapshot/restore.ts';
import { freshEntropy, requireMemory } from './memory.ts';
import { volumesOf } from './mount-volumes.ts';
import { startTicksOf, type RunningRecord } from './record.ts';
import { releaseBlank } from './remove.ts';
import { restoreBlank } from './restore-blank.ts';
import { snapshotOf, type SnapshotFacts } from './snapshot.ts';

/**
 * Makes a sandbox that begins with the processes of a snapshot. Its ID, tokens, environment and random numbers are its own.
 * A failed one leaves its files, for the caller to remove. Errors: `not_found`, `precondition`, `internal`, `unavailable`.
 */
export async function createFromMemory(node: NodeContext, request: CreateSandbox, snapshotId: string): Promise<Running> {
  const { sandboxId, executionId, resources, network, image } = request;
  const snapshot = await verified(node, snapshotId);
  // Only takeSnapshot writes them.
  const { agentDir, bootId, controlToken } = snapshot.manifest.facts as SnapshotFacts;
  const layers = await Promise.all(image.layers.map(digest => node.layers.mount(digest)));
  node.records.keptOf(sandboxId);
  const disk = node.records.diskOf(sandboxId);
  await makeBareDisk(node, disk, sandboxId, resources.diskMiB);
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
