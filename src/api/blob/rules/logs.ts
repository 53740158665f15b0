import { randomBytes } from 'node:crypto';
import { gunzipSync, gzipSync } from 'node:zlib';
import { decrypt, encrypt, encryptionKey } from '../../../base/crypto/encryption.ts';
import { openFrames, sealFrames, sealedBytes } from '../../../base/crypto/frames.ts';
import type { Clock } from '../../../base/clock.ts';
import type { NodeProtocol } from '../../../protocol/node.ts';
import { type ReadSandboxLogs, type SandboxLogEntry, sandboxLogLevels } from '../../../protocol/logs.ts';
import type { Db } from '../../database/db.ts';
import { findBlob } from '../store/blobs.ts';
import type { ClusterStore } from './cluster-store.ts';

const keyBytes = 32;
const keyPurpose = 'logs in the store';
/** Entries per request, and entries kept of one sandbox: the newest. */
const pageEntries = 1_000;
const entriesMax = 20_000;
/** Bound on the unpacked text. */
const textBytesMax = 64 << 20;

/** What it takes to store logs. */
type Deps = { db: Db; clock: Clock; store: ClusterStore; seed: Uint8Array };

/**
 * Logs of ended sandboxes in the store, where they outlive their machines. Each is one object, packed and encrypted
 * with a key of its own.
 */
export class StoredLogs {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Whether the store is usable, as far as is known. */
  get isUsable(): boolean {
    return this.#deps.store.isUsable;
  }

  /**
   * Stores the log of a sandbox, assembled from the machines that it was on. False: it is not there yet, because
   * another process is storing it, which may fail. Errors: those of the machines and the store.
   */
  async store(sandboxId: string, machines: readonly Pick<NodeProtocol, 'logs'>[]): Promise<boolean> {
    const { db, store, seed } = this.#deps;
    const known = await findBlob(db, 'log', sandboxId);
    if (known) return known.state === 'stored';
    const all = await Promise.all(machines.map(machine => newestOf(machine, sandboxId)));
    const entries = all.flat().toSorted((a, b) => a.timestampMs - b.timestampMs);
    const packed = gzipSync(entries.map(entry => JSON.stringify(entry)).join('\n'));
    const key = randomBytes(keyBytes);
    const sealedKey = encrypt(encryptionKey(seed, keyPurpose), key.toString('base64url'), sandboxId);
    const own = () => sealFrames(key, once(packed));
    return store.put(
      { kind: 'log', name: sandboxId, sealedKey, facts: null },
      { sizeBytes: sealedBytes(packed.length), own },
      null,
    );
  }

  /** A page of a log, as the sandbox's node would answer it; null where the log is not in the store. */
  async read({ sandboxId, ...page }: ReadSandboxLogs): Promise<SandboxLogEntry[] | null> {
    const { db, store, seed } = this.#deps;
    const blob = await findBlob(db, 'log', sandboxId);
    if (blob?.state !== 'stored' || blob.sealedKey === null) return null;
    const key = Buffer.from(decrypt(encryptionKey(seed, keyPurpose), blob.sealedKey, sandboxId), 'base64url');
    const parts: Uint8Array[] = [];
    for await (const part of openFrames(key, store.read(blob))) parts.push(part);
    const text = gunzipSync(Buffer.concat(parts), { maxOutputLength: textBytesMax }).toString('utf8');
    const entries = text === '' ? [] : text.split('\n').map(line => JSON.parse(line) as SandboxLogEntry);
    return pageOf(entries, page);
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

async function newestOf(machine: Pick<NodeProtocol, 'logs'>, sandboxId: string): Promise<SandboxLogEntry[]> {
  const entries: SandboxLogEntry[] = [];
  for (let beforeMs: number | undefined; entries.length < entriesMax;) {
    const page = { backward: true, limit: pageEntries, ...(beforeMs !== undefined && { beforeMs }) };
    const found = await machine.logs({ sandboxId, ...page });
    entries.push(...found);
    beforeMs = found.at(-1)?.timestampMs;
    if (found.length < pageEntries) break;
  }
  return entries;
}

/** The entries that a query selects; the given entries are oldest first. */
export function pageOf(
  entries: readonly SandboxLogEntry[],
  {
    fromMs = 0,
    beforeMs = Number.POSITIVE_INFINITY,
    backward,
    minimum = 'debug',
    logger,
    search = '',
    limit,
  }: Omit<ReadSandboxLogs, 'sandboxId'>,
): SandboxLogEntry[] {
  const least = sandboxLogLevels.indexOf(minimum);
  const text = search.toLowerCase();
  const found = entries.filter(
    entry =>
      entry.timestampMs >= fromMs &&
      entry.timestampMs < beforeMs &&
      sandboxLogLevels.indexOf(entry.level) >= least &&
      (logger === undefined || entry.logger === logger) &&
      (text === '' || entry.message.toLowerCase().includes(text)),
  );
  return (backward ? found.reverse() : found).slice(0, limit);
}
