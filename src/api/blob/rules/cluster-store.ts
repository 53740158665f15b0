import { AtollError, messageOf } from '../../../base/error.ts';
import type { Clock } from '../../../base/clock.ts';
import { newUuid } from '../../../base/id.ts';
import { inPieces } from '../../../base/pieces.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import { type BlobStore, partBytes, partsOf } from '../../../protocol/blob.ts';
import type { ClusterLinks } from '../../../protocol/cluster.ts';
import type { Db } from '../../database/db.ts';
import type { BlobOwner, BlobRecord } from '../record.ts';
import { type Taking, writeToMachine } from './write-to-machine.ts';
import { abandonBlob, beginBlob, finishBlob, hasBlobs, type NewBlob, storeIdOf } from '../store/blobs.ts';

/** How long a machine may use the URLs that it was given, seconds: longer than a transfer may take. */
const urlSeconds = 3600;
/** Digits of the number of a part in its key. */
const partDigits = 5;
const keyStart = (storeId: string) => `${storeId}/blobs/`;

/** What to upload: a machine sends it by URLs or this process reads it from the machine, or this process has it. */
type Outgoing = { sizeBytes: number } & (
  | { send(urls: string[]): Promise<void>; open(): Promise<{ sizeBytes: number; descriptor: number }> }
  | { own(): AsyncIterable<Uint8Array> }
);

/** What a machine should get, in the same two ways. */
type Incoming<T> = Taking<T> & { receive(urls: string[]): Promise<T> };

/** What it takes to open the store of a cluster. */
type Options = {
  blobs: BlobStore;
  db: Db;
  clock: Clock;
  links: Pick<ClusterLinks, 'read' | 'write'>;
  replicaId: string;
  log: Log;
  /** See src/blob/check.ts. */
  check(): Promise<void>;
};

/**
 * The store of a cluster: blobs in parts with random names, so that a late deletion can't hit what was written anew. A
 * row of the database says what is there.
 */
export class ClusterStore {
  readonly #options: Options;
  readonly #storeId: string;
  #trouble: AtollError | null = null;
  /** An examination that is under way. */
  #examining: Promise<void> | null = null;
  /** Blobs whose rows this process is writing: any other of its blobs that is still `uploading` has been given up. */
  readonly #sending = new Set<string>();

  private constructor(options: Options, storeId: string) {
    this.#options = options;
    this.#storeId = storeId;
  }

  /** Opens the store; `examine` says whether it can be used. */
  static async open(options: Options): Promise<ClusterStore> {
    return new ClusterStore(options, await storeIdOf(options.db, newUuid()));
  }

  /** Whether the store is usable, as far as is known. */
  get isUsable(): boolean {
    return this.#trouble === null;
  }

  /** Whether this process is uploading a blob now. */
  isSending(blobId: string): boolean {
    return this.#sending.has(blobId);
  }

  /** Throws whatever is known to keep the store from being used. */
  requireUsable(): void {
    if (this.#trouble) throw this.#trouble;
  }

  /** Checks whether the store can be used, and logs when that changes. */
  examine(): Promise<void> {
    this.#examining ??= this.#examine().finally(() => (this.#examining = null));
    return this.#examining;
  }

  /**
   * A failure of the store may concern everybody: the next caller learns that now, and not only after the next round.
   */
  #suspect(error: unknown): void {
    if (error instanceof AtollError && error.detail?.startsWith('store_') && this.#trouble === null)
      this.examine().catch(() => {}); // the next round checks again
  }

  async #examine(): Promise<void> {
    const { log, blobs, check } = this.#options;
    const trouble = await check()
      .then(() => this.#requireOwn())
      .then(
        () => null,
        (error: unknown) =>
          error instanceof AtollError ? error : new AtollError('internal', `The store failed: ${messageOf(error)}`),
      );
    if (trouble && trouble.message !== this.#trouble?.message)
      log.error('the store can not be used: creates, and pauses on nodes, go on without it', {
        reason: trouble.message,
      });
    if (!trouble && this.#trouble) log.info('the store can be used again', { store: blobs.place });
    this.#trouble = trouble;
  }

  /**
   * Uploads what a machine sends, and answers when the row says that it is there. False: another process has done so,
   * or is doing it now. Errors: those of `BlobStore` and of the machine; then it is not there.
   */
  async put(blob: Omit<NewBlob, 'blobId' | 'bytes'>, outgoing: Outgoing, owner: BlobOwner | null): Promise<boolean> {
    this.requireUsable();
    const { db, clock, replicaId } = this.#options;
    const blobId = newUuid();
    const bytes = outgoing.sizeBytes;
    this.#sending.add(blobId);
    try {
      if (!(await beginBlob(db, { ...blob, blobId, bytes }, { replicaId, nowUs: clock() }))) return false;
      await this.#send(blobId, outgoing);
      if (await finishBlob(db, blobId, owner, clock())) return true;
      throw new AtollError('unavailable', 'What was uploaded had been given up meanwhile', { retryAfterSeconds: 5 });
    } catch (error) {
      await abandonBlob(db, blobId, clock()).catch(() => {}); // the collector does that when the database is back
      this.#suspect(error);
      throw error;
    } finally {
      this.#sending.delete(blobId);
    }
  }

  /** Brings a blob to a machine. Errors: those of `BlobStore` and of the machine. */
  async bring<T>({ blobId, bytes }: Pick<BlobRecord, 'blobId' | 'bytes'>, incoming: Incoming<T>): Promise<T> {
    this.requireUsable();
    const { blobs, links } = this.#options;
    const keys = this.#keysOf(blobId, bytes);
    const { presign } = blobs;
    if (presign) return incoming.receive(keys.map(key => presign(key, 'GET', urlSeconds)));
    return writeToMachine(links, incoming, this.#read(keys));
  }

  /** Reads a blob in this process. Errors: those of `BlobStore`. */
  read({ blobId, bytes }: Pick<BlobRecord, 'blobId' | 'bytes'>): AsyncIterable<Uint8Array> {
    this.requireUsable();
    return this.#read(this.#keysOf(blobId, bytes));
  }

  /** Deletes the objects of a blob that is `deleting`. */
  async delete({ blobId, bytes }: { blobId: string; bytes: number }): Promise<void> {
    for (const key of this.#keysOf(blobId, bytes)) await this.#options.blobs.remove(key);
  }

  /** The objects of this cluster, with the blobs that they belong to. */
  async *objects(): AsyncGenerator<{ key: string; blobId: string; changedAtMs: number }> {
    const start = keyStart(this.#storeId);
    for await (const { key, changedAtMs } of this.#options.blobs.list(start))
      yield { key, blobId: key.slice(start.length).split('/')[0] ?? '', changedAtMs };
  }

  /** Deletes an object that belongs to no blob. */
  async deleteObject(key: string): Promise<void> {
    await this.#options.blobs.remove(key);
  }

  /** A store that lacks what the database says is there is another store, and gets nothing. */
  async #requireOwn(): Promise<void> {
    const { blobs, db } = this.#options;
    const key = `${this.#storeId}/about`;
    if ((await blobs.head(key)) !== null) return;
    if (await hasBlobs(db))
      throw new AtollError(
        'precondition',
        `The store ${blobs.place} is not the one that holds what this cluster has stored: correct ATOLL_STORE`,
        { detail: 'store_refused' },
      );
    await blobs.put(key, new TextEncoder().encode('Blobs of an Atoll cluster: its database says what they are.\n'));
  }

  async #send(blobId: string, outgoing: Outgoing): Promise<void> {
    const { blobs, links } = this.#options;
    const keys = this.#keysOf(blobId, outgoing.sizeBytes);
    const { presign } = blobs;
    if ('send' in outgoing && presign) {
      await outgoing.send(keys.map(key => presign(key, 'PUT', urlSeconds)));
      return this.#requireWhole(blobId, outgoing.sizeBytes);
    }
    const source = 'own' in outgoing ? outgoing.own() : links.read((await outgoing.open()).descriptor);
    let part = 0;
    let sent = 0;
    for await (const bytes of inPieces(source, partBytes)) {
      const key = keys[part++];
      sent += bytes.length;
      if (key === undefined || sent > outgoing.sizeBytes) break;
      await blobs.put(key, bytes);
    }
    if (sent !== outgoing.sizeBytes)
      throw new AtollError('unavailable', `${sent} bytes came instead of ${outgoing.sizeBytes}`);
  }

  /**
   * Throws `unavailable` where the store lacks a byte of a blob. A machine sends whatever a stream gives it, and a
   * stream that breaks off at its other end looks complete.
   */
  async #requireWhole(blobId: string, sizeBytes: number): Promise<void> {
    let stored = 0;
    for await (const { bytes } of this.#options.blobs.list(this.#startOf(blobId))) stored += bytes;
    if (stored !== sizeBytes)
      throw new AtollError('unavailable', `${stored} bytes came into the store instead of ${sizeBytes}`);
  }

  async *#read(keys: readonly string[]): AsyncGenerator<Uint8Array> {
    for (const key of keys) yield await this.#options.blobs.get(key);
  }

  #keysOf(blobId: string, bytes: number): string[] {
    const start = this.#startOf(blobId);
    return Array.from({ length: partsOf(bytes) }, (_, number) => `${start}${String(number).padStart(partDigits, '0')}`);
  }

  #startOf(blobId: string): string {
    return `${keyStart(this.#storeId)}${blobId}/`;
  }
}
