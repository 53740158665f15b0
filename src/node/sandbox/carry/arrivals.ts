import { mkdirSync, rmSync } from 'node:fs';
import { rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { openFrames } from '../../../base/crypto/frames.ts';
import { AtollError } from '../../../base/error.ts';
import { newUuid } from '../../../base/id.ts';
import type { Arrival } from '../../../protocol/cluster.ts';
import { type ArchiveHeader, type FindDraft, writeArchive } from './archive.ts';

/** Things of one kind that come at a time. */
const arrivalsMax = 4;
/** What one that comes must leave of the disk. */
const diskReserveBytes = 1 << 30;
/** For how long one that came waits to be kept. Milliseconds. */
const heldMs = 60 * 60_000;

type Carried = 'sandbox' | 'draft' | 'snapshot' | 'volume';

/** Something that is to come: sealed with `key` (base64url), of so many bytes. */
type Coming<Content, Kept> = {
  key: string;
  sizeBytes: number;
  /** For what may refer to a draft. */
  findDraft?: FindDraft;
  /** All of it is in the folder, which goes afterwards where it is still there. */
  keep(header: ArchiveHeader<Content>, folder: string): Promise<Kept>;
};

/** What comes to this machine, each in a folder of its own beneath `place`, which is emptied first. */
export class Arrivals {
  readonly #place: string;
  readonly #what: Carried;
  readonly #open = new Set<string>();

  constructor(place: string, what: Carried) {
    this.#place = emptyFolder(place);
    this.#what = what;
  }

  /** Errors: `unavailable` or `no_space` where no more of so many bytes is taken. */
  async receive<Content, Kept>({ key, sizeBytes, findDraft, keep }: Coming<Content, Kept>): Promise<Arrival<Kept>> {
    await this.#admit(sizeBytes);
    const id = newUuid();
    const folder = join(this.#place, id);
    this.#open.add(id);
    mkdirSync(folder, { mode: 0o700 });
    let header: ArchiveHeader<Content> | undefined;
    const drop = async () => {
      clearTimeout(timer);
      this.#open.delete(id);
      await rm(folder, { recursive: true, force: true });
    };
    const timer = setTimeout(() => void drop(), heldMs);
    timer.unref();
    return {
      async take(bytes) {
        const opened = openFrames(Buffer.from(key, 'base64url'), bytes);
        header = await writeArchive<Content>(opened, folder, findDraft).catch(explain);
      },
      keep: async () => {
        try {
          if (!header) throw new AtollError('invalid', `not all of the ${this.#what} has come`);
          return await keep(header, folder);
        } finally {
          await drop();
        }
      },
      drop,
    };
  }

  async #admit(sizeBytes: number): Promise<void> {
    if (this.#open.size >= arrivalsMax)
      throw new AtollError(
        'unavailable',
        `${arrivalsMax} ${this.#what}s come to this node, which is the most at a time`,
        { retryAfterSeconds: 2 },
      );
    await requireRoom(this.#place, sizeBytes, `the ${this.#what}`);
  }
}

/** Throws `no_space` where so many bytes more leave too little of the disk. `what` they are, for the error. */
export async function requireRoom(folder: string, bytes: number, what: string): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  if (bavail * bsize - bytes < diskReserveBytes)
    throw new AtollError('no_space', `The disk of this machine has no room for ${what}`);
}

/** Empties a folder in which a crash may have left something, and answers it. */
export function emptyFolder(path: string): string {
  rmSync(path, { recursive: true, force: true });
  mkdirSync(path, { recursive: true, mode: 0o700 });
  return path;
}

function explain(error: unknown): never {
  if (error instanceof AtollError) throw error;
  throw new AtollError('invalid', 'what came can not be decrypted', { cause: error });
}
