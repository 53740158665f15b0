import { basename, join } from 'node:path';
import { sealedBytes, sealFrames } from '../../../base/crypto/frames.ts';
import { AtollError } from '../../../base/error.ts';
import { syncTree } from '../../../base/sync.ts';
import type { DraftCarrier, DraftRef, PauseFacts } from '../../../protocol/cluster.ts';
import { copyImage } from '../../disks/copy-image.ts';
import type { Layers } from '../../layers/store.ts';
import type { Helper } from '../../native/helper.ts';
import { draftMemory } from '../../snapshot/checkpoint.ts';
import {
  checkpointBytes,
  checkpointSource,
  requireCheckpoints,
  type CheckpointSupport,
} from '../keep/checkpoint-support.ts';
import { slotMountPoint } from '../slot/slot-disk.ts';
import { allocatedBytes } from '../../disks/allocated-bytes.ts';
import { archiveBytes, type ArchiveHeader, planFiles, readArchive } from './archive.ts';
import { Arrivals } from './arrivals.ts';
import { type CarryParts, requireNoVolumes } from './carrier.ts';
import { KnownPages } from './known-pages.ts';
import { isPages, memoryFolder, pagesIn } from './since-draft.ts';

/** Most memory that a draft is made of: the node's memory holds the places of its pages. */
const memoryBytesMax = 2 * 2 ** 30;

type DraftParts = CarryParts & { helper: Helper; layers: Layers; checkpoints: CheckpointSupport };
type DraftHeader = ArchiveHeader<DraftRef>;

/** Carries drafts of running sandboxes from machine to machine. `pauses` sends what follows a draft. */
export function createDraftCarrier(parts: DraftParts, pauses: Pick<DraftCarrier, 'sendRest'>): DraftCarrier {
  const { drafts, layout, memoryFacts } = parts;
  const arrivals = new Arrivals(join(layout.data, 'arriving-drafts'), 'draft', parts.space);
  const headerOf = (target: DraftRef): DraftHeader => ({
    version: 1,
    record: target,
    // No sandbox continues from a draft alone: what follows it says which agent it was.
    agent: memoryFacts.agent,
    files: planFiles(drafts.require(target).folder, path => path !== basename(diskOf(parts, target)) && !isPages(path)),
  });
  return {
    async describe(target) {
      const { layers, driver, memory } = await take(parts, target);
      const sizeBytes = sealedBytes(archiveBytes(headerOf(target)));
      return { kept: 'memory', sizeBytes, layers, driver, memory };
    },
    async send(target, key) {
      const header = headerOf(target);
      const bytes = readArchive(drafts.require(target).folder, header);
      return { sizeBytes: sealedBytes(archiveBytes(header)), bytes: sealFrames(Buffer.from(key, 'base64url'), bytes) };
    },
    receive: (target, key, sizeBytes) =>
      arrivals.receive<DraftRef, void>({
        key,
        sizeBytes,
        async keep({ record }, folder) {
          if (record.draftId !== target.draftId) throw new AtollError('invalid', 'what came is another draft');
          // This way the pause need not write out what it leaves unchanged.
          await syncTree(folder);
          await drafts.put(target, folder);
        },
      }),
    sendRest: (target, key) => pauses.sendRest(target, key),
    drop: target => drafts.drop(target),
  };
}

const diskOf = ({ records }: DraftParts, { sandboxId }: DraftRef) => records.diskOf(sandboxId);

/** Takes the draft of a running sandbox, and answers what the receiving machine must have. */
async function take(parts: DraftParts, target: DraftRef): Promise<Omit<PauseFacts, 'kept' | 'sizeBytes'>> {
  const { drafts, helper, layers, layout, sandboxes, space } = parts;
  const { record, processes } = sandboxes.requireRunning(target);
  requireNoVolumes(record);
  const { driver, slot } = processes;
  const host = requireCheckpoints(parts.checkpoints, driver);
  const memoryBytes = driver.memoryUsed(slot);
  if (memoryBytes > memoryBytesMax)
    throw new AtollError('precondition', `of more than ${memoryBytesMax} bytes of memory no draft is made`);
  const disk = diskOf(parts, target);
  using _room = space.reserve(
    'the draft of a sandbox',
    (await checkpointBytes(host, processes, { disk, teamId: record.teamId })) + allocatedBytes(disk),
  );
  const folder = drafts.begin(target);
  try {
    const source = checkpointSource(processes, {
      disk,
      diskMount: slotMountPoint(layout, slot),
      layers: await Promise.all(record.image.layers.map(digest => layers.mount(digest))),
      volumes: [],
      ...(record.teamId !== undefined && { teamId: record.teamId }),
    });
    await sandboxes.inTurn(target.sandboxId, async () => {
      sandboxes.requireRunning(target);
      const directory = join(folder, memoryFolder);
      await draftMemory(host, source, { directory, name: `draft-${slot.name}`, facts: {} });
    });
    // It runs on meanwhile: whatever is half written by then differs later, and is sent again.
    await copyImage(helper, { from: disk, to: join(folder, basename(disk)), what: 'the disk of a draft' });
    // This happens while it runs on, so that none of it is left to do while it stands still.
    drafts.finish(target, await KnownPages.of(pagesIn(folder).map(path => join(folder, path))));
    const memory = { ...parts.memoryFacts, agent: parts.agents.digestOf(record.agentDir) };
    return { layers: record.image.layers, driver: record.driver, memory };
  } catch (error) {
    await drafts.drop(target);
    throw error;
  }
}
