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
/** Entries that are asked for at a time, and that are kept of one sandbox: the newest. */
const pageEntries = 1_000;
const entriesMax = 20_000;
/** Bound of what is unpacked. */
const textBytesMax = 64 << 20;

/** What logs are stored with. */
type Deps = { db: Db; clock: Clock; store: ClusterStore; seed: Uint8Array };

/**
 * Logs of sandboxes that have ended, in the store: they outlive their machines. One object each, packed and encrypted
 * with a key of its own.
 */
export class StoredLogs {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Whether nothing is known that keeps the store from being used. */
  get isUsable(): boolean {
    return this.#deps.store.isUsable;
  }

  /**
   * Puts the log of a sandbox into the store, as the machines say that it was on. False: it is not there yet, another
   * process puts it there, which may fail. Errors: those of the machines and the store.
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

  /** A page of a log, as the node of the sandbox would answer it; null where it is not in the store. */
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

/** Those of some entries, the oldest first, that a query asks for. */
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
