import type { Snapshot, TakeSnapshot } from '../../../protocol/node.ts';
import type { Records } from '../records/record-store.ts';
import type { Pausing, Running } from '../state/sandbox-state.ts';
import type { Sandboxes } from '../state/sandboxes.ts';
import { keepSnapshot, type SnapshotParts, type SnapshotSource } from './keep-snapshot.ts';

/** Keeps the present state of a running sandbox. Errors: those of `NodeProtocol.snapshot`. */
export async function takeSnapshot(
  parts: SnapshotParts & { sandboxes: Sandboxes; records: Records },
  request: TakeSnapshot,
): Promise<Snapshot> {
  const { sandboxes, records } = parts;
  const { sandboxId } = request;
  const source = sandboxes.requireProcesses(request);
  const snapshot = await keepSnapshot(parts, request, sourceOf(records, source), work =>
    sandboxes.inTurn(sandboxId, () => {
      // The processes stay the same for a whole execution.
      sandboxes.requireRunning(request);
      return work();
    }),
  );
  return { ...snapshot, driver: source.record.driver };
}

function sourceOf(records: Records, { record, processes }: Running | Pausing): SnapshotSource {
  const { sandboxId, teamId, agentDir, bootId, controlToken, image, volumes } = record;
  return {
    processes,
    teamId,
    disk: records.diskOf(sandboxId),
    layers: image.layers,
    facts: { agentDir, bootId, controlToken },
    volumes,
  };
}
