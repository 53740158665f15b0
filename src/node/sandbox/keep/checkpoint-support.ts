import { AtollError } from '../../../base/error.ts';
import type { MemoryAbility } from '../../../protocol/node.ts';
import { volumeChanged, type SandboxVolume } from '../../../protocol/volume.ts';
import type { Driver } from '../../drivers/driver.ts';
import type { CheckpointSource } from '../../snapshot/checkpoint-source.ts';
import { nodeFull, tellsShortage } from '../../../protocol/no-room.ts';
import { checkpointFailed } from '../../snapshot/criu.ts';
import { namelessFiles } from '../../snapshot/nameless-files.ts';
import type { RestoreHost } from '../../snapshot/restore.ts';
import type { Processes } from '../slot/processes.ts';
import { allocatedBytes } from '../../disks/allocated-bytes.ts';

/** What checkpoints the processes of sandboxes on this node, or why nothing does. */
export type CheckpointSupport = { supported: true; host: RestoreHost } | { supported: false; reason: string };

/** What can be kept of the memory of a driver's sandboxes. */
export function memoryAbilityOf(support: CheckpointSupport, { capabilities }: Driver): MemoryAbility {
  if (capabilities.withoutCheckpoints !== null) return { kept: false, reason: capabilities.withoutCheckpoints };
  return support.supported ? { kept: true } : { kept: false, reason: support.reason };
}

/** What checkpoints and restores the driver's sandboxes. Errors: `precondition` with the reason if nothing does. */
export function requireCheckpoints(support: CheckpointSupport, { capabilities }: Driver): RestoreHost {
  if (capabilities.withoutCheckpoints !== null)
    throw new AtollError(
      'precondition',
      `the memory of this sandbox can't be kept: ${capabilities.withoutCheckpoints}`,
    );
  if (support.supported) return support.host;
  throw new AtollError('precondition', `the memory of sandboxes can't be kept on this node: ${support.reason}`);
}

/** Describes processes in a slot for a checkpoint. `layers` and `diskMount`: mount points in the helper's namespace. */
export function checkpointSource(
  { slot, driver, pid }: Pick<Processes, 'slot' | 'driver' | 'pid'>,
  root: Pick<CheckpointSource, 'disk' | 'diskMount' | 'layers' | 'volumes' | 'teamId'>,
): CheckpointSource {
  return {
    ...root,
    pid,
    slotName: slot.name,
    memoryBytes: () => driver.memoryUsed(slot),
    group: {
      freeze: () => driver.freeze(slot),
      beginFreeze: () => driver.beginFreeze(slot),
      frozen: () => driver.frozen(slot),
      thaw: () => driver.thaw(slot),
      processes: () => driver.processes(slot),
    },
  };
}

/**
 * Turns a failed checkpoint into its meaning: if this sandbox has something that can't be kept, that is its state and
 * no passing trouble of the node, unless CRIU itself lacked something. CRIU's message may quote names that the sandbox
 * chose: they can decide only which of the two is answered.
 */
export function explainCheckpoint(error: unknown): unknown {
  if (!isCheckpointFailure(error)) return error;
  if (tellsShortage(error.message)) return shortage(error);
  return new AtollError('precondition', error.message, { fields: error.fields, cause: error });
}

/**
 * Turns a failed restore into its meaning, as above. Others may have deleted, changed or locked what processes have
 * open on a volume: then nothing is wrong with the machine, and asking again does not help. Nobody else changes the
 * files of a sandbox without volumes: if its memory can't continue, that is a fault.
 */
export function explainRestore(error: unknown, volumes: readonly SandboxVolume[]): unknown {
  if (!isCheckpointFailure(error)) return error;
  if (tellsShortage(error.message)) return shortage(error);
  if (volumes.length === 0) return error;
  const paths = volumes.map(({ path }) => path).join(', ');
  return new AtollError('conflict', `${error.message} (others may have changed what it has open in ${paths})`, {
    fields: error.fields,
    detail: volumeChanged,
    cause: error,
  });
}

const isCheckpointFailure = (error: unknown): error is AtollError =>
  error instanceof AtollError && error.code === 'unavailable' && error.detail === checkpointFailed;

const shortage = (error: AtollError) =>
  new AtollError('unavailable', error.message, { fields: error.fields, detail: nodeFull, cause: error });

/**
 * How much of the host's disk a checkpoint of a sandbox would take now: its memory, and files without a name; or all
 * of its disk, if there are too many to find them. Errors: `unavailable`.
 */
export async function checkpointBytes(
  host: Pick<RestoreHost, 'helper' | 'helperBinary'>,
  { driver, slot }: Pick<Processes, 'driver' | 'slot'>,
  { disk, teamId }: { disk: string; teamId?: string | undefined },
): Promise<number> {
  const { diskBytes, isAll } = await namelessFiles(host, { pids: driver.processes(slot), teamId });
  return driver.memoryUsed(slot) + (isAll ? diskBytes : allocatedBytes(disk));
}
