import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { sealedBytes, sealFrames } from '../../../base/crypto/frames.ts';
import { AtollError } from '../../../base/error.ts';
import { syncTree } from '../../../base/sync.ts';
import type { DraftCarrier, PauseCarrier, PauseFacts } from '../../../protocol/cluster.ts';
import type { ExecutionRef, MemoryFacts, PausedSandbox } from '../../../protocol/node.ts';
import type { Drivers } from '../../drivers/drivers.ts';
import type { Layout } from '../../layout.ts';
import type { SandboxLogs } from '../../logs/sandbox-logs.ts';
import type { Space } from '../../space/space.ts';
import { isChecksums } from '../../snapshot/checksums.ts';
import { readManifest } from '../../snapshot/manifest.ts';
import { underChecksums } from '../keep/under-checksums.ts';
import type { KeptFiles } from '../keep/kept.ts';
import { memoryOf } from '../keep/memory-files.ts';
import { dropFrozen, type FrozenParts } from '../lifecycle/frozen.ts';
import { pausedSummaryOf } from '../lifecycle/pause.ts';
import type { PausedRecord, SandboxRecord } from '../records/record.ts';
import type { Records } from '../records/record-store.ts';
import type { Paused } from '../state/sandbox-state.ts';
import type { Agents } from './agents.ts';
import { archiveBytes, type ArchiveHeader, planFiles, readArchive } from './archive.ts';
import { Arrivals } from './arrivals.ts';
import type { Drafts } from './drafts.ts';
import { sinceDraft } from './since-draft.ts';

/** How long a sandbox may be held while it is sent. Milliseconds. */
const heldMs = 30 * 60_000;

type PauseHeader = ArchiveHeader<PausedRecord>;

/** What carrying sandboxes needs. */
export type CarryParts = FrozenParts & {
  layout: Layout;
  records: Records;
  kept: KeptFiles;
  drivers: Drivers;
  space: Pick<Space, 'reserve'>;
  logs: Pick<SandboxLogs, 'write'>;
  agents: Agents;
  /** What arriving memory has to fit. */
  memoryFacts: MemoryFacts;
  drafts: Drafts;
};

/** Carries paused sandboxes from machine to machine; `sendRest` sends to a machine that has a draft. */
export function createCarrier(parts: CarryParts): PauseCarrier & Pick<DraftCarrier, 'sendRest'> {
  const arrivals = new Arrivals(join(parts.layout.data, 'arriving'), 'sandbox', parts.space);
  return {
    describe: target =>
      describeRunning(parts, target) ??
      parts.sandboxes.inTurn(target.sandboxId, async () => describe(parts, await still(parts, target))),
    send: (target, key) => send(parts, target, key, record => headerOf(parts, record)),
    async sendRest(target, key) {
      const draft = parts.drafts.require(target);
      return send(parts, target, key, async record =>
        sinceDraft(headerOf(parts, record), parts.records.keptOf(record.sandboxId), draft),
      );
    },
    receive: (target, key, sizeBytes) =>
      arrivals.receive<PausedRecord, PausedSandbox>({
        key,
        sizeBytes,
        findDraft: draftId => parts.drafts.find({ ...target, draftId })?.folder,
        async keep(header, folder) {
          const record = arrivedRecord(parts, target, header);
          if (header.draft) await parts.drafts.drop(header.draft);
          return parts.sandboxes.inTurn(target.sandboxId, () => keepArrived(parts, record, folder));
        },
      }),
  };
}

/** The kept files of a sandbox, under checksums, once no process can change them. To be called in its turn. */
async function still(parts: CarryParts, target: ExecutionRef): Promise<PausedRecord> {
  const found = parts.sandboxes.findPaused(target);
  if (!found || found.record.setAside)
    throw new AtollError('not_found', `sandbox ${target.sandboxId} is not paused on this node`);
  requireNoVolumes(found.record);
  const paused: Paused = found.kind === 'frozen' ? await dropFrozen(parts, found) : found;
  return (await underChecksums(parts, paused)).record;
}

/** Errors: `precondition`. */
export function requireNoVolumes({ volumes }: SandboxRecord): void {
  if (volumes.length > 0)
    throw new AtollError('precondition', 'a sandbox with volumes stays on the machine that has them');
}

/** What a running sandbox would be if it were paused with its memory now; null if it does not run. */
function describeRunning(parts: CarryParts, target: ExecutionRef): Promise<PauseFacts> | null {
  const state = parts.sandboxes.get(target.sandboxId);
  if (state?.kind !== 'running' || state.record.executionId !== target.executionId) return null;
  const { record, processes } = state;
  return (async () => {
    requireNoVolumes(record);
    return {
      kept: 'memory',
      sizeBytes: processes.driver.memoryUsed(processes.slot),
      layers: record.image.layers,
      driver: record.driver,
      memory: { ...parts.memoryFacts, agent: parts.agents.digestOf(record.agentDir) },
    };
  })();
}

/** The archive of a sandbox. The network policy stays here: whoever resumes it says which one applies. */
function headerOf({ records, agents }: CarryParts, record: PausedRecord): PauseHeader {
  const isWorkFile = (path: string) => isChecksums(path) || /^memory\.(partial|stale)(\/|$)/.test(path);
  return {
    version: 1,
    record: { ...record, network: { internetAccess: false }, frozen: null },
    agent: agents.digestOf(record.agentDir),
    files: planFiles(records.keptOf(record.sandboxId), isWorkFile),
  };
}

function describe(parts: CarryParts, record: PausedRecord): PauseFacts {
  const header = headerOf(parts, record);
  const { kernel, criu } =
    record.kept === 'memory' ? readManifest(memoryOf(parts.records, record.sandboxId)).madeBy : parts.memoryFacts;
  return {
    kept: record.kept,
    sizeBytes: sealedBytes(archiveBytes(header)),
    layers: record.image.layers,
    driver: record.driver,
    memory: { ...parts.memoryFacts, kernel, criu, agent: header.agent },
  };
}

/** The sandbox keeps its turn until everything was read, or nobody reads any more. */
async function send(
  parts: CarryParts,
  target: ExecutionRef,
  key: string,
  headerFor: (record: PausedRecord) => PauseHeader | Promise<PauseHeader>,
): Promise<{ sizeBytes: number; bytes: AsyncIterable<Uint8Array> }> {
  const ready = Promise.withResolvers<{ sizeBytes: number; bytes: AsyncIterable<Uint8Array> }>();
  const over = Promise.withResolvers<void>();
  const aborted = new AbortController();
  void parts.sandboxes
    .inTurn(target.sandboxId, async () => {
      const record = await still(parts, target);
      const header = await headerFor(record);
      const archive = readArchive(parts.records.keptOf(target.sandboxId), header);
      const sealed = sealFrames(Buffer.from(key, 'base64url'), archive);
      const timer = setTimeout(() => {
        aborted.abort();
        over.resolve();
      }, heldMs);
      ready.resolve({
        sizeBytes: sealedBytes(archiveBytes(header)),
        bytes: whileHeld(sealed, aborted.signal, over.resolve),
      });
      await over.promise.finally(() => clearTimeout(timer));
    })
    .catch(ready.reject);
  return ready.promise;
}

async function* whileHeld(
  bytes: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
  over: () => void,
): AsyncGenerator<Uint8Array> {
  try {
    for await (const piece of bytes) {
      signal.throwIfAborted();
      yield piece;
    }
  } finally {
    over();
  }
}

/** The record of a sandbox that arrived, adapted to this machine. Errors: `invalid`, `precondition`. */
function arrivedRecord(parts: CarryParts, target: ExecutionRef, { record, agent }: PauseHeader): PausedRecord {
  const { sandboxId, executionId, kept, driver } = record;
  if (sandboxId !== target.sandboxId || executionId !== target.executionId)
    throw new AtollError('invalid', 'what came is another sandbox');
  if (!parts.drivers.names.includes(driver))
    throw new AtollError('precondition', `this machine has no driver ${driver}, which isolates the sandbox`);
  const agentDir = parts.agents.require(kept === 'memory' ? agent : parts.agents.present);
  return { ...record, agentDir, frozen: null, setAside: null, volumes: [] };
}

/** To be called in the sandbox's turn. Once the record is written it is paused here, whatever happens. */
async function keepArrived(parts: CarryParts, record: PausedRecord, folder: string): Promise<PausedSandbox> {
  const { sandboxes, records, kept, logs } = parts;
  const { sandboxId } = record;
  const there = sandboxes.findPaused(record);
  if (there) return pausedSummaryOf(there.record);
  if (sandboxes.get(sandboxId))
    throw new AtollError('conflict', `sandbox ${sandboxId} is on this node already, as another execution`);
  try {
    // Writing the checksums also writes out the files beside them, but not memory, which is in a folder of its own.
    await syncTree(folder);
    renameSync(folder, records.keptOf(sandboxId));
    await kept.writeChecksums(sandboxId);
    await records.write(record);
  } catch (error) {
    records.forget(sandboxId);
    await records.remove(sandboxId);
    throw error;
  }
  sandboxes.add({ kind: 'paused', sandboxId, record });
  logs.write(sandboxId, 'info', 'sandbox', 'came from another machine, paused', { event: 'arrived' });
  return pausedSummaryOf(record);
}
