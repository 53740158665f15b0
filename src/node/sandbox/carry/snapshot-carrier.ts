import { existsSync, mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { sealedBytes, sealFrames } from '../../../base/crypto/frames.ts';
import { AtollError } from '../../../base/error.ts';
import { syncPath } from '../../../base/sync.ts';
import type { PauseFacts, SnapshotCarrier } from '../../../protocol/cluster.ts';
import type { MemoryFacts } from '../../../protocol/node.ts';
import type { Drivers } from '../../drivers/drivers.ts';
import type { Layout } from '../../layout.ts';
import type { Helper } from '../../native/helper.ts';
import type { Space } from '../../space/space.ts';
import { isChecksums, makeDurable, writeChecksums } from '../../snapshot/checksums.ts';
import { readManifest, writeManifest } from '../../snapshot/manifest.ts';
import { snapshotOf, type SnapshotFacts } from '../snapshot/snapshot-store.ts';
import type { Agents } from './agents.ts';
import { archiveBytes, type ArchiveHeader, planFiles, readArchive } from './archive.ts';
import { Arrivals } from './arrivals.ts';

/** What carrying the memory of snapshots needs. */
type CarryParts = {
  layout: Layout;
  helper: Helper;
  helperBinary: string;
  drivers: Drivers;
  space: Pick<Space, 'reserve'>;
  agents: Agents;
  /** What arriving memory has to fit. */
  memoryFacts: MemoryFacts;
};

/** Identifies the snapshot in its archive. Everything else is in its manifest, which is one of the files. */
type SnapshotRecord = { snapshotId: string };
type Header = ArchiveHeader<SnapshotRecord>;

/**
 * Carries the memory of snapshots, including those of templates' servers, from machine to machine. A snapshot does not
 * change, so it is read without a lock; if it is deleted meanwhile, the reader finds it too short.
 */
export function createSnapshotCarrier(parts: CarryParts): SnapshotCarrier {
  const arrivals = new Arrivals(join(parts.layout.data, 'arriving-snapshots'), 'snapshot', parts.space);
  return {
    async describe(snapshotId) {
      const header = headerOf(parts, snapshotId);
      const { madeBy, facts } = readManifest(snapshotOf(parts.layout, snapshotId));
      return {
        kept: 'memory',
        sizeBytes: sealedBytes(archiveBytes(header)),
        layers: (facts as SnapshotFacts).layers,
        // Only this driver's sandboxes are checkpointed.
        driver: (parts.drivers.withCheckpoints ?? parts.drivers.default).name,
        memory: { ...parts.memoryFacts, kernel: madeBy.kernel, criu: madeBy.criu, agent: header.agent },
      } satisfies PauseFacts;
    },
    async send(snapshotId, key) {
      const header = headerOf(parts, snapshotId);
      return {
        sizeBytes: sealedBytes(archiveBytes(header)),
        bytes: sealFrames(Buffer.from(key, 'base64url'), readArchive(snapshotOf(parts.layout, snapshotId), header)),
      };
    },
    receive: (snapshotId, key, sizeBytes) =>
      arrivals.receive<SnapshotRecord, void>({
        key,
        sizeBytes,
        keep: (header, folder) => keepArrived(parts, snapshotId, header, folder),
      }),
  };
}

function headerOf({ layout, agents }: CarryParts, snapshotId: string): Header {
  const directory = snapshotOf(layout, snapshotId);
  const agent = agents.digestOf((readManifest(directory).facts as SnapshotFacts).agentDir);
  return { version: 1, record: { snapshotId }, agent, files: planFiles(directory, isChecksums) };
}

/** Once it is renamed it is a snapshot of this machine. */
async function keepArrived(
  parts: CarryParts,
  snapshotId: string,
  { record, agent }: Header,
  folder: string,
): Promise<void> {
  if (record.snapshotId !== snapshotId) throw new AtollError('invalid', 'what came is another snapshot');
  const agentDir = parts.agents.require(agent);
  const directory = snapshotOf(parts.layout, snapshotId);
  if (existsSync(directory)) return;
  const manifest = readManifest(folder);
  const facts: SnapshotFacts = { ...(manifest.facts as SnapshotFacts), agentDir };
  writeManifest(folder, { ...manifest, facts });
  await writeChecksums(parts, folder);
  mkdirSync(parts.layout.snapshots, { recursive: true, mode: 0o700 });
  // It is on the disk before it gets its name, because the name means that it is complete.
  await makeDurable(parts, folder);
  renameSync(folder, directory);
  await syncPath(parts.layout.snapshots);
}
