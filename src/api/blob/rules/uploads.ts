import { createReadStream } from 'node:fs';
import { AtollError, messageOf } from '../../../base/error.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import type { ClusterLinks } from '../../../protocol/cluster.ts';
import type { UploadRef } from '../../../protocol/upload.ts';
import type { KnownMachine, Machines } from '../../cluster/rules/machines.ts';
import type { Db } from '../../database/db.ts';
import { markBlob, findBlob, touchBlob, uploadsOfTeam } from '../store/blobs.ts';
import type { ClusterStore } from './cluster-store.ts';
import { writeToMachine } from './write-to-machine.ts';

/** What it takes to share uploads in a cluster. */
type Deps = {
  db: Db;
  clock: Clock;
  log: Log;
  machines: Machines;
  links: Pick<ClusterLinks, 'read' | 'write'>;
  /** Null: uploads are on machines alone. */
  store: ClusterStore | null;
};

/** An archive of a team in the store, and how to remove it. */
type StoredUpload = { sizeBytes: number; usedMs: number; remove(): Promise<void> };

const nameOf = ({ teamId, hash }: UploadRef) => `${teamId}/${hash}`;

/**
 * Uploaded archives of a cluster: any of its control processes takes them, and any machine may build with them. They
 * are in the store or, where there is none or it fails, on one of the machines.
 */
export class SharedUploads {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Whether an archive is there. Asking for it keeps it for longer. */
  async has(upload: UploadRef): Promise<boolean> {
    const { db, clock } = this.#deps;
    return (await touchBlob(db, 'upload', nameOf(upload), clock())) || (await this.#holder(upload, null)) !== undefined;
  }

  /** Takes an archive from a file of this process and shares it. Errors: `unavailable`, `no_space`. */
  async keep(upload: UploadRef, file: { path: string; sizeBytes: number }): Promise<void> {
    const { store, log } = this.#deps;
    if (store?.isUsable)
      try {
        return await this.#putIntoStore(store, upload, file);
      } catch (error) {
        log.warn('an upload goes to a machine, as the store failed', { error: messageOf(error) });
      }
    const [first] = this.#deps.machines.usable();
    if (!first) throw new AtollError('unavailable', 'No machine of the cluster is in reach now: send it again later');
    await this.#write(first, upload, file.sizeBytes, fileBytes(file.path));
  }

  /**
   * Brings archives to the machine that will build with them. Errors: `invalid` for archives that were not uploaded.
   */
  async ensure({ machine }: KnownMachine, uploads: readonly UploadRef[]): Promise<void> {
    if (uploads.length === 0) return;
    for (const upload of await machine.uploads.missing([...uploads])) await this.#bring(machine, upload);
  }

  /** The archives of a team that are in the store. */
  async ofTeam(teamId: string): Promise<StoredUpload[]> {
    const { db, clock, store } = this.#deps;
    if (!store) return [];
    return (await uploadsOfTeam(db, teamId)).map(({ blobId, bytes, changedAtUs }) => ({
      sizeBytes: bytes,
      usedMs: Date.now() - (clock() - changedAtUs) / 1000,
      remove: () => markBlob(db, blobId, clock()),
    }));
  }

  async #putIntoStore(
    store: ClusterStore,
    upload: UploadRef,
    { path, sizeBytes }: { path: string; sizeBytes: number },
  ): Promise<void> {
    const { db, clock } = this.#deps;
    const name = nameOf(upload);
    const known = await findBlob(db, 'upload', name);
    if (known?.state === 'stored' && known.bytes !== sizeBytes) await markBlob(db, known.blobId, clock());
    else if (await touchBlob(db, 'upload', name, clock())) return;
    const blob = { kind: 'upload', name, sealedKey: null, facts: null } as const;
    if (await store.put(blob, { sizeBytes, own: () => fileBytes(path) }, null)) return;
    throw new AtollError('unavailable', 'The same files are being uploaded at this moment: ask again');
  }

  async #bring(to: KnownMachine['machine'], upload: UploadRef): Promise<void> {
    const { db, store, links, log } = this.#deps;
    const blob = await findBlob(db, 'upload', nameOf(upload));
    if (store && blob?.state === 'stored') {
      try {
        return await store.bring(blob, {
          receive: urls => to.transfers.receiveUpload(upload, blob.bytes, urls),
          open: () => to.uploads.openWrite(upload, blob.bytes),
          keep: writeId => to.uploads.keepWrite(writeId, blob.bytes),
          drop: writeId => to.uploads.dropWrite(writeId),
        });
      } catch (error) {
        log.warn('an upload could not be had from the store', { error: messageOf(error) });
      }
    }
    const holder = await this.#holder(upload, to);
    if (!holder)
      throw new AtollError(
        'unavailable',
        `The uploaded files ${upload.hash} are not in reach: upload them again, and start the build again`,
      );
    const { sizeBytes, descriptor } = await holder.uploads.openRead(upload);
    const bytes = links.read(descriptor);
    try {
      await this.#write({ machine: to }, upload, sizeBytes, bytes);
    } finally {
      await bytes.return(undefined);
    }
  }

  /** A machine in reach, other than `except`, that has an archive. */
  async #holder(
    upload: UploadRef,
    except: KnownMachine['machine'] | null,
  ): Promise<KnownMachine['machine'] | undefined> {
    const others = this.#deps.machines.usable().flatMap(({ machine }) => (machine === except ? [] : [machine]));
    const found = await Promise.all(
      others.map(machine =>
        machine.uploads.missing([upload]).then(
          missing => missing.length === 0,
          () => false, // out of reach
        ),
      ),
    );
    return others[found.indexOf(true)];
  }

  async #write(
    { machine: { uploads } }: Pick<KnownMachine, 'machine'>,
    upload: UploadRef,
    sizeBytes: number,
    bytes: AsyncIterable<Uint8Array>,
  ): Promise<void> {
    const taking = {
      open: () => uploads.openWrite(upload, sizeBytes),
      keep: (writeId: string) => uploads.keepWrite(writeId, sizeBytes),
      drop: (writeId: string) => uploads.dropWrite(writeId),
    };
    await writeToMachine(this.#deps.links, taking, bytes);
  }
}

const readAtOnceBytes = 1 << 20;

async function* fileBytes(path: string): AsyncGenerator<Uint8Array> {
  for await (const part of createReadStream(path, { highWaterMark: readAtOnceBytes })) yield part as Buffer;
}
