import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { systemCodeOf } from '../../../base/error.ts';
import { newUuid } from '../../../base/id.ts';
import { sha256Hex } from '../../../base/crypto/secret.ts';
import type { BuildState } from '../../../protocol/build.ts';
import type { SandboxResources, StartedImage } from '../../../protocol/node.ts';
import type { DriverName } from '../../../protocol/driver.ts';
import type { Drivers } from '../../drivers/drivers.ts';
import type { Layers } from '../../layers/store.ts';
import type { Layout } from '../../layout.ts';
import { memoryAbilityOf, type CheckpointSupport } from '../../sandbox/keep/checkpoint-support.ts';
import { listSnapshots, snapshotOf } from '../../sandbox/snapshot/snapshot-store.ts';
import type { BuildSandbox } from '../sandbox/build-sandbox.ts';

/** Raised when the meaning of what is kept changes. */
const version = 1;
/** In the snapshot's directory, without a checksum: written once everything else is there. */
const recordFile = 'started.json';

/** Everything that the processes after the start depend on. */
type StartFacts = {
  /** Whoever builds a template may know the random numbers of its server: memory is kept for that team alone. */
  teamId: string;
  state: BuildState;
  startCommand: string;
  readyCommand: string | undefined;
  resources: SandboxResources;
};

type StartedRecord = { key: string; layers: string[] };

/** Sandboxes in which the start command of a template runs, kept with their memory for new ones to begin with. */
export type StartedSandboxes = {
  /**
   * Whether sandboxes of a driver are kept: only those of the default driver, if this node can keep memory. Undefined:
   * the default.
   */
  areKept(driver: DriverName | undefined): boolean;
  /** What a build with the same facts has kept, if all of it is still there. */
  find(facts: StartFacts): StartedImage | undefined;
  /**
   * Keeps a sandbox whose server is ready. Errors: `precondition` (it can't be kept, with the reason), `no_space`,
   * `internal`.
   */
  keep(sandbox: Pick<BuildSandbox, 'keep'>, facts: StartFacts): Promise<StartedImage>;
};

/** `agentDir` is the current copy of the agent. It is part of what is kept, so a new one means a new start. */
export function createStartedSandboxes({
  layers,
  layout,
  agentDir,
  drivers,
  checkpoints,
}: {
  layers: Pick<Layers, 'has'>;
  layout: Layout;
  agentDir: string;
  drivers: Drivers;
  checkpoints: CheckpointSupport;
}): StartedSandboxes {
  const keyOf = (facts: StartFacts) => sha256Hex(JSON.stringify([version, basename(agentDir), facts]));
  const recordAt = (snapshotId: string) => join(snapshotOf(layout, snapshotId), recordFile);
  return {
    areKept(name) {
      const driver = drivers.of(name ?? drivers.default.name);
      return driver === drivers.default && memoryAbilityOf(checkpoints, driver).kept;
    },
    find(facts) {
      const key = keyOf(facts);
      for (const { snapshotId } of listSnapshots(layout)) {
        const record = readRecord(recordAt(snapshotId));
        if (record?.key === key && record.layers.every(digest => layers.has(digest)))
          return { snapshotId, layers: record.layers, resources: facts.resources };
      }
      return undefined;
    },
    async keep(sandbox, facts) {
      const snapshotId = newUuid();
      const kept = await sandbox.keep(snapshotId);
      const record: StartedRecord = { key: keyOf(facts), layers: kept.layers };
      writeFileSync(recordAt(snapshotId), JSON.stringify(record), { mode: 0o600 });
      return { snapshotId, layers: kept.layers, resources: facts.resources };
    },
  };
}

/** Undefined for a snapshot of a sandbox, and if a crash came before the record was complete. */
function readRecord(path: string): StartedRecord | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as StartedRecord;
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT' || error instanceof SyntaxError) return undefined;
    throw error;
  }
}
