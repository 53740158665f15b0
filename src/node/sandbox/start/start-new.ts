import { messageOf } from '../../../base/error.ts';
import { step } from '../../../base/telemetry/trace.ts';
import type { CreateSandbox, SandboxResources } from '../../../protocol/node.ts';
import { isServerFailure } from '../../../protocol/template/server-failure.ts';
import type { Drivers } from '../../drivers/drivers.ts';
import type { CheckpointSupport } from '../keep/checkpoint-support.ts';
import type { RestoredAhead } from './ahead/restored-ahead.ts';
import {
  makeBeginningsDisk,
  openBeginning,
  type Beginning,
  type BeginningParts,
  type SnapshotBeginning,
} from './restored-standby.ts';
import { startSandbox, type StartedSandbox, type StartOrder, type StartParts } from './start-sandbox.ts';

/** What starting new sandboxes needs. */
type StartNewParts = StartParts &
  BeginningParts & {
    drivers: Drivers;
    /** Undefined: nothing is restored ahead. */
    restoredAhead: RestoredAhead | undefined;
  };

/**
 * Starts the sandbox of a create: with the memory of a snapshot, with the template's server as its build has kept it,
 * or anew. A failed start leaves nothing. Errors: those of `NodeProtocol.create`.
 */
export async function startNew(parts: StartNewParts, request: CreateSandbox): Promise<StartedSandbox> {
  const order: StartOrder = {
    volumes: [],
    ...request,
    driver: parts.drivers.toStart(request.image.driver),
    resumedFrom: null,
  };
  const beginning = beginningOf(parts, request);
  try {
    if (beginning?.recordsOrigin === false) return await startFromSnapshot(parts, order, beginning);
    const started = beginning && (await startWithServer(parts, order, beginning));
    return started ?? (await startFromTemplate(parts, order));
  } catch (error) {
    parts.records.forget(request.sandboxId);
    await parts.records.remove(request.sandboxId);
    throw error;
  }
}

/**
 * What the sandbox of a create begins with; undefined if it boots. One that begins with the memory of its template
 * boots, too, if that can't be used.
 */
export function beginningOf(
  { drivers, checkpoints }: Pick<StartNewParts, 'drivers' | 'checkpoints'>,
  request: CreateSandbox,
): SnapshotBeginning | undefined {
  const { resources } = request;
  const { started, ...image } = request.image;
  const driver = drivers.toStart(image.driver);
  // Snapshots hold what CRIU has checkpointed. Without CRIU the sandbox boots from the files.
  if (driver.capabilities.withoutCheckpoints !== null) return undefined;
  const { memorySnapshotId } = image;
  if (memorySnapshotId !== undefined)
    return { driver, snapshotId: memorySnapshotId, image: request.image, resources, recordsOrigin: false };
  if (!started || !canBeginWithServer(checkpoints, started.resources, request)) return undefined;
  const { snapshotId, layers } = started;
  const own = { ...image, layers, memorySnapshotId: snapshotId };
  return { driver, snapshotId, image: own, resources, recordsOrigin: true };
}

/** Whether a sandbox with these limits can begin with what a template's build has kept of its server. */
function canBeginWithServer(
  checkpoints: CheckpointSupport,
  kept: SandboxResources,
  { resources: { cpuCount, memoryMiB }, volumes }: CreateSandbox,
): boolean {
  return checkpoints.supported && !volumes?.length && kept.cpuCount === cpuCount && kept.memoryMiB === memoryMiB;
}

/**
 * Starts a sandbox with the start command running as the template's build has kept it. Undefined if that can't be
 * used: the sandbox then boots, and starts the command.
 */
async function startWithServer(
  parts: StartNewParts,
  order: StartOrder,
  beginning: SnapshotBeginning,
): Promise<StartedSandbox | undefined> {
  const { sandboxId } = order;
  try {
    return await step('memory', () => startFromSnapshot(parts, order, beginning));
  } catch (error) {
    await parts.records.remove(sandboxId);
    parts.log.warn('a sandbox boots, because it can’t begin with the memory of its template', {
      sandboxId,
      error: messageOf(error),
    });
    return undefined;
  }
}

/** Starts a sandbox with the files of its template. */
async function startFromTemplate(parts: StartNewParts, order: StartOrder): Promise<StartedSandbox> {
  const { driver, image, resources } = order;
  const beginning = { driver, snapshotId: null, image, resources, recordsOrigin: true };
  const started = driver.capabilities.adoptsRoot
    ? undefined // the pool has the waiting ones
    : await startWaiting(parts, order, beginning, 'template');
  return started ?? startSandbox(parts, order, { kind: 'template' });
}

/**
 * Turns a waiting sandbox into the requested one; undefined: none waits, or it can't be used. If it can be used and
 * the template's server fails in it, that is the error.
 */
async function startWaiting(
  parts: StartNewParts,
  order: StartOrder,
  beginning: Beginning,
  kind: 'template' | 'restored',
): Promise<StartedSandbox | undefined> {
  const { sandboxId, volumes } = order;
  const standby = volumes.length === 0 ? parts.restoredAhead?.take(beginning) : undefined;
  if (!standby) return undefined;
  try {
    return await startSandbox(parts, { ...order, image: standby.image }, { kind, standby });
  } catch (error) {
    if (isServerFailure(error)) throw error;
    await parts.records.remove(sandboxId);
    parts.log.warn('a sandbox that waited could not be used', { sandboxId, error: messageOf(error) });
    return undefined;
  }
}

/** Starts a sandbox with the processes of a snapshot. Its ID, tokens, environment and random numbers are its own. */
async function startFromSnapshot(
  parts: StartNewParts,
  order: StartOrder,
  beginning: SnapshotBeginning,
): Promise<StartedSandbox> {
  const { sandboxId } = order;
  const started = await startWaiting(parts, order, beginning, 'restored');
  if (started) return started;
  using opened = await openBeginning(parts, beginning);
  const { host, snapshot, facts, image: ownImage } = opened;
  parts.records.keptOf(sandboxId);
  await makeBeginningsDisk(parts, snapshot, beginning, parts.records.diskOf(sandboxId));
  return await startSandbox(
    parts,
    { ...order, image: ownImage },
    { kind: 'memory', host, snapshot, ...facts, beforeRun: async () => {} },
  );
}
