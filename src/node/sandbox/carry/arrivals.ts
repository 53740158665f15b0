import { mkdirSync, rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { openFrames } from '../../../base/crypto/frames.ts';
import { AtollError } from '../../../base/error.ts';
import { newUuid } from '../../../base/id.ts';
import type { Arrival } from '../../../protocol/cluster.ts';
import type { Room } from '../../space/reservations.ts';
import type { Space } from '../../space/space.ts';
import { type ArchiveHeader, type FindDraft, writeArchive } from './archive.ts';

/** How many things of one kind may arrive at a time. */
const arrivalsMax = 4;
/** How long an arrival waits to be kept. Milliseconds. */
const heldMs = 60 * 60_000;

type Carried = 'sandbox' | 'draft' | 'snapshot' | 'volume';

/** Something that will arrive: sealed with `key` (base64url), of `sizeBytes`. */
type Coming<Content, Kept> = {
  key: string;
  sizeBytes: number;
  /** Set for what may refer to a draft. */
  findDraft?: FindDraft;
  /** Called when everything is in the folder; the folder is removed afterwards if it is still there. */
  keep(header: ArchiveHeader<Content>, folder: string): Promise<Kept>;
};

/** What arrives at this machine, each in a folder of its own below `place`, which is emptied first. */
export class Arrivals {
  readonly #place: string;
  readonly #what: Carried;
  readonly #space: Pick<Space, 'reserve'>;
  readonly #open = new Set<string>();

  constructor(place: string, what: Carried, space: Pick<Space, 'reserve'>) {
    this.#place = emptyFolder(place);
    this.#what = what;
    this.#space = space;
  }

  /** Errors: `unavailable` or `no_space` if no more of this size can be accepted. */
  async receive<Content, Kept>({ key, sizeBytes, findDraft, keep }: Coming<Content, Kept>): Promise<Arrival<Kept>> {
    const room = this.#admit(sizeBytes);
    // Another machine has announced the size: if more comes, it must not use up the disk's reserve.
    const admit = (bytes: number) => {
      if (bytes > sizeBytes) this.#reserve(bytes - sizeBytes)[Symbol.dispose]();
    };
    const id = newUuid();
    const folder = join(this.#place, id);
    let header: ArchiveHeader<Content> | undefined;
    const drop = async () => {
      clearTimeout(timer);
      this.#open.delete(id);
      room[Symbol.dispose]();
      await rm(folder, { recursive: true, force: true });
    };
    this.#open.add(id);
    const timer = setTimeout(() => void drop(), heldMs);
    timer.unref();
    try {
      mkdirSync(folder, { mode: 0o700 });
    } catch (error) {
      await drop();
      throw error;
    }
    return {
      async take(bytes) {
        const opened = openFrames(Buffer.from(key, 'base64url'), counted(bytes, room));
        header = await writeArchive<Content>(opened, folder, findDraft, admit).catch(explain);
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

  /** Nobody else gets in between the question for room and the answer. */
  #admit(sizeBytes: number): Room {
    if (this.#open.size >= arrivalsMax)
      throw new AtollError(
        'unavailable',
        `${arrivalsMax} ${this.#what}s come to this node, which is the most at a time`,
        { retryAfterSeconds: 2 },
      );
    return this.#reserve(sizeBytes);
  }

  #reserve(bytes: number): Room {
    return this.#space.reserve(`a ${this.#what} that comes to this machine`, bytes);
  }
}

/** Bytes that have arrived are on the disk right after, and count there. */
async function* counted(bytes: AsyncIterable<Uint8Array>, room: Room): AsyncGenerator<Uint8Array> {
  for await (const piece of bytes) {
    room.wrote(piece.length);
    yield piece;
  }
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
