import { messageOf } from '../../../base/error.ts';
import { step } from '../../../base/telemetry/trace.ts';
import type { CreateSandbox, SandboxResources } from '../../../protocol/node.ts';
import type { Driver } from '../../drivers/driver.ts';
import type { Drivers } from '../../drivers/drivers.ts';
import type { CheckpointSupport } from '../keep/checkpoint-support.ts';
import type { RestoredAhead } from './restored-ahead.ts';
import { makeBeginningsDisk, openBeginning, type BeginningParts } from './restored-standby.ts';
import { startSandbox, type StartedSandbox, type StartOrder, type StartParts } from './start-sandbox.ts';

/** What new sandboxes are started with. */
type StartNewParts = StartParts &
  BeginningParts & {
    drivers: Drivers;
    /** Undefined: nothing is restored ahead. */
    restoredAhead: RestoredAhead | undefined;
  };

/**
 * Starts the sandbox of a create: with the memory of a snapshot, with the template's server as its build has kept it,
 * or anew. A failed start leaves nothing. Errors: as those of `NodeProtocol.create`.
 */
export async function startNew(parts: StartNewParts, request: CreateSandbox): Promise<StartedSandbox> {
  const driver = parts.drivers.toStart(request.image.driver);
  const { memorySnapshotId } = request.image;
  try {
    // Snapshots hold what CRIU has checkpointed. Without it the sandbox boots from the files.
    if (driver.capabilities.withoutCheckpoints === null) {
      if (memorySnapshotId !== undefined)
        return await startFromSnapshot(parts, orderOf(request, driver), memorySnapshotId, { recordsOrigin: false });
      const started = await startWithServer(parts, request, driver);
      if (started) return started;
    }
    return await startSandbox(parts, orderOf(request, driver), { kind: 'template' });
  } catch (error) {
    parts.records.forget(request.sandboxId);
    await parts.records.remove(request.sandboxId);
    throw error;
  }
}

function orderOf(request: CreateSandbox, driver: Driver): StartOrder {
  return { volumes: [], ...request, driver, resumedFrom: null };
}

/**
 * The snapshot with whose memory the sandbox of a create begins; undefined where it boots. One with the memory of its
 * template boots too where that can't be used.
 */
export function snapshotToBegin(
  { drivers, checkpoints }: Pick<StartNewParts, 'drivers' | 'checkpoints'>,
  request: CreateSandbox,
): string | undefined {
  const { driver, memorySnapshotId } = request.image;
  if (drivers.toStart(driver).capabilities.withoutCheckpoints !== null) return undefined;
  return memorySnapshotId ?? serverToBegin(checkpoints, request)?.snapshotId;
}

/** What the template's build has kept of its server, where a sandbox can begin with that. */
function serverToBegin(checkpoints: CheckpointSupport, { image, resources, volumes }: CreateSandbox) {
  if (!image.started || !checkpoints.supported || volumes?.length) return undefined;
  return limitsDiffer(image.started.resources, resources) ? undefined : image.started;
}

/**
 * Starts a sandbox with the start command running as the template's build has kept it, where that is of this sandbox's
 * size. Undefined where it is not or can't be used: the sandbox boots then, and starts the command.
 */
async function startWithServer(
  parts: StartNewParts,
  request: CreateSandbox,
  driver: Driver,
): Promise<StartedSandbox | undefined> {
  const kept = serverToBegin(parts.checkpoints, request);
  if (!kept) return undefined;
  const { started: _, ...image } = request.image;
  const { snapshotId, layers } = kept;
  const order = { ...orderOf(request, driver), image: { ...image, layers, memorySnapshotId: snapshotId } };
  try {
    return await step('memory', () => startFromSnapshot(parts, order, snapshotId, { recordsOrigin: true }));
  } catch (error) {
    await parts.records.remove(request.sandboxId);
    parts.log.warn('a sandbox boots, because it can’t begin with the memory of its template', {
      sandboxId: request.sandboxId,
      error: messageOf(error),
    });
    return undefined;
  }
}

function limitsDiffer(a: SandboxResources, b: SandboxResources): boolean {
  return a.cpuCount !== b.cpuCount || a.memoryMiB !== b.memoryMiB;
}

/**
 * Starts a sandbox with the processes of a snapshot. Its ID, tokens, environment and random numbers are its own.
 * `recordsOrigin`: its disk says which build it was made from.
 */
async function startFromSnapshot(
  parts: StartNewParts,
  order: StartOrder,
  snapshotId: string,
  { recordsOrigin }: { recordsOrigin: boolean },
): Promise<StartedSandbox> {
  const { sandboxId, driver, image, resources } = order;
  const beginning = { driver, snapshotId, image, resources, recordsOrigin };
  const standby = order.volumes.length === 0 ? parts.restoredAhead?.take(beginning) : undefined;
  if (standby) {
    try {
      return await startSandbox(parts, { ...order, image: standby.image }, { kind: 'restored', standby });
    } catch (error) {
      await parts.records.remove(sandboxId);
      parts.log.warn('a sandbox that was restored ahead could not be used', { sandboxId, error: messageOf(error) });
    }
  }
  const { host, snapshot, facts, image: ownImage } = await openBeginning(parts, beginning);
  parts.records.keptOf(sandboxId);
  await makeBeginningsDisk(parts, snapshot, beginning, parts.records.diskOf(sandboxId));
  return startSandbox(
    parts,
    { ...order, image: ownImage },
    { kind: 'memory', host, snapshot, ...facts, beforeRun: async () => {} },
  );
}
