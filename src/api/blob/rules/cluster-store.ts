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

/**
 * For how long a machine may read and write by the URLs that it was given, seconds: longer than a transfer may
 * take.
 */
const urlSeconds = 3600;
/** Digits of the number of a part in its key. */
const partDigits = 5;
const keyStart = (storeId: string) => `${storeId}/blobs/`;

/** What a machine is to send: by URLs itself, or read from it by this process; or what this process has. */
type Outgoing = { sizeBytes: number } & (
  | { send(urls: string[]): Promise<void>; open(): Promise<{ sizeBytes: number; descriptor: number }> }
  | { own(): AsyncIterable<Uint8Array> }
);

/** What a machine is to get, in the same two ways. */
type Incoming<T> = Taking<T> & { receive(urls: string[]): Promise<T> };

/** What the store of a cluster is opened with. */
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
 * The store of a cluster: blobs in parts, each named by chance, so that nothing that is deleted late can hit what was
 * written anew. A row of the database says what is there.
 */
export class ClusterStore {
  readonly #options: Options;
  readonly #storeId: string;
  #trouble: AtollError | null = null;
  /** An examination that is under way. */
  #examining: Promise<void> | null = null;
  /** Blobs whose rows this process is writing: of any other that says `uploading` it has given up. */
  readonly #sending = new Set<string>();

  private constructor(options: Options, storeId: string) {
    this.#options = options;
    this.#storeId = storeId;
  }

  /** Opens the store; whether it can be used, `examine` says. */
  static async open(options: Options): Promise<ClusterStore> {
    return new ClusterStore(options, await storeIdOf(options.db, newUuid()));
  }

  /** Nothing is known that keeps the store from being used. */
  get isUsable(): boolean {
    return this.#trouble === null;
  }

  /** Whether this process is uploading a blob now. */
  isSending(blobId: string): boolean {
    return this.#sending.has(blobId);
  }

  /** Throws what keeps the store from being used, as far as that is known. */
  requireUsable(): void {
    if (this.#trouble) throw this.#trouble;
  }

  /** Finds out whether the store can be used, and says so in the log when that changes. */
  examine(): Promise<void> {
    this.#examining ??= this.#examine().finally(() => (this.#examining = null));
    return this.#examining;
  }

  /** What has failed by the store may fail for all: who comes next is told so, and not only after the next round. */
  #suspect(error: unknown): void {
    if (error instanceof AtollError && error.detail?.startsWith('store_') && this.#trouble === null)
      this.examine().catch(() => {}); // the next round looks again
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
   * Puts what a machine sends into the store and answers when the row says that it is there. False: somebody else has
   * done so, or does it now. Errors: those of `BlobStore` and of the machine; then it is not there.
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
      await abandonBlob(db, blobId, clock()).catch(() => {}); // collecting does so, when the database is there again
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

  /** The bytes of a blob, for this process. Errors: those of `BlobStore`. */
  read({ blobId, bytes }: Pick<BlobRecord, 'blobId' | 'bytes'>): AsyncIterable<Uint8Array> {
    this.requireUsable();
    return this.#read(this.#keysOf(blobId, bytes));
  }

  /** Deletes the objects of a blob whose row says so. */
  async delete({ blobId, bytes }: { blobId: string; bytes: number }): Promise<void> {
    for (const key of this.#keysOf(blobId, bytes)) await this.#options.blobs.remove(key);
  }

  /** The objects of this cluster, with the blobs that they are parts of. */
  async *objects(): AsyncGenerator<{ key: string; blobId: string; changedAtMs: number }> {
    const start = keyStart(this.#storeId);
    for await (const { key, changedAtMs } of this.#options.blobs.list(start))
      yield { key, blobId: key.slice(start.length).split('/')[0] ?? '', changedAtMs };
  }

  /** Deletes an object that belongs to no blob. */
  async deleteObject(key: string): Promise<void> {
    await this.#options.blobs.remove(key);
  }

  /** A store that lacks what the database says of it is another one, and gets nothing. */
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
   * Throws `unavailable` where the store lacks a byte of a blob: a machine sends what a stream gives it, and one that
   * breaks off with its other end looks like one that is over.
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
