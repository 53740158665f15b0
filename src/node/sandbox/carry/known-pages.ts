import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { AtollError } from '../../../base/error.ts';

/** The unit of comparison: memory comes in pages, disks in blocks of that size. */
const pageBytes = 4096;
/** More pages than a file has. */
const filePages = 2 ** 32;
/** Bytes of a file that are read at a time. */
const pieceBytes = 1 << 20;
/** Bytes of a known file that are read around a page. */
const windowBytes = 256 << 10;

/** A part of a file that is in a known one: place, bytes, number of the known file, place there. */
export type Copy = [at: number, bytes: number, file: number, from: number];

/** A file in parts: those that are in known files, and the others. */
type Split = { copies: Copy[]; extents: [at: number, bytes: number][] };

/**
 * Pages of files that another machine has, found by their content wherever they are: in a later state of the same
 * processes most pages are the same, but at other places. Nobody changes the files meanwhile. After the disposal the
 * files stay open until lookups that are under way have ended: then other files get their descriptors' numbers.
 */
export class KnownPages implements Disposable {
  readonly #files: KnownFile[];
  /**
   * Numbers of pages, by a hash of their content; of equal pages, the last. The numbers of a file's pages begin at its
   * number × `filePages`.
   */
  readonly #places = new Map<number, number>();
  #users = 0;
  #isOver = false;

  private constructor(files: KnownFile[]) {
    this.#files = files;
  }

  static async of(paths: readonly string[]): Promise<KnownPages> {
    using opened = new DisposableStack();
    const known = new KnownPages(paths.map(path => opened.adopt(new KnownFile(path), file => file.close())));
    for (const [number, path] of paths.entries())
      for await (const { piece, at } of piecesOf(path))
        for (let done = 0; done + pageBytes <= piece.length; done += pageBytes)
          known.#places.set(hashOf(piece, done), number * filePages + (at + done) / pageBytes);
    opened.move();
    return known;
  }

  /** Which parts of a file are in known ones. Errors: `not_found` after the disposal. */
  async split(path: string): Promise<Split> {
    if (this.#isOver) throw new AtollError('not_found', 'the draft is not on this node any more');
    this.#users++;
    try {
      return await this.#split(path);
    } finally {
      this.#users--;
      this.#closeUnused();
    }
  }

  async #split(path: string): Promise<Split> {
    const split: Split = { copies: [], extents: [] };
    for await (const { piece, at } of piecesOf(path))
      for (let done = 0; done < piece.length; done += pageBytes) {
        const bytes = Math.min(pageBytes, piece.length - done);
        const place = bytes === pageBytes ? this.#find(piece, done, split.copies.at(-1), at + done) : undefined;
        if (place) addCopy(split.copies, [at + done, bytes, ...place]);
        else addExtent(split.extents, at + done, bytes);
      }
    return split;
  }

  /** Finds a page; if possible, right after the page before it. */
  #find(piece: Buffer, at: number, last: Copy | undefined, fileAt: number): [file: number, from: number] | undefined {
    if (last && last[0] + last[1] === fileAt) {
      const [, bytes, file, from] = last;
      if (this.#files[file]?.has(from + bytes, piece, at)) return [file, from + bytes];
    }
    const place = this.#places.get(hashOf(piece, at)) ?? -1;
    const [file, from] = [Math.floor(place / filePages), (place % filePages) * pageBytes];
    return this.#files[file]?.has(from, piece, at) ? [file, from] : undefined;
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#closeUnused();
  }

  #closeUnused(): void {
    if (this.#isOver && this.#users === 0) for (const file of this.#files.splice(0)) file.close();
  }
}

/**
 * Which parts of a file differ from the same places of a known one of the same size. `extents`: where either file has
 * data.
 */
export async function changesOf(
  path: string,
  knownPath: string,
  extents: readonly [at: number, bytes: number][],
): Promise<[at: number, bytes: number][]> {
  const known = new KnownFile(knownPath);
  const changed: [number, number][] = [];
  try {
    for (const [at, bytes] of extents)
      for await (const { piece, at: from } of piecesOf(path, at, at + bytes))
        for (let done = 0; done < piece.length; done += pageBytes) {
          const count = Math.min(pageBytes, piece.length - done);
          if (!known.has(from + done, piece, done, count)) addExtent(changed, from + done, count);
        }
  } finally {
    known.close();
  }
  return changed;
}

/** Places that are in either of two lists, in order and each once. */
export function eitherOf(
  one: readonly [at: number, bytes: number][],
  other: readonly [at: number, bytes: number][],
): [at: number, bytes: number][] {
  const either: [number, number][] = [];
  for (const [at, bytes] of [...one, ...other].toSorted((a, b) => a[0] - b[0])) {
    const last = either.at(-1);
    if (last && last[0] + last[1] >= at) last[1] = Math.max(last[1], at + bytes - last[0]);
    else either.push([at, bytes]);
  }
  return either;
}

const hashOf = (piece: Buffer, at: number) => Bun.hash.xxHash32(piece.subarray(at, at + pageBytes));

function addExtent(extents: [number, number][], at: number, bytes: number): void {
  const last = extents.at(-1);
  if (last && last[0] + last[1] === at) last[1] += bytes;
  else extents.push([at, bytes]);
}

function addCopy(copies: Copy[], [at, bytes, file, from]: Copy): void {
  const last = copies.at(-1);
  const follows = last && last[2] === file && last[0] + last[1] === at && last[3] + last[1] === from;
  if (follows) last[1] += bytes;
  else copies.push([at, bytes, file, from]);
}

/** The content of a file, or of one part of it, in pieces that begin at whole pages of the part. */
async function* piecesOf(
  path: string,
  from = 0,
  to = Number.MAX_SAFE_INTEGER,
): AsyncGenerator<{ piece: Buffer; at: number }> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    for (let at = from; at < to;) {
      const wanted = Math.min(pieceBytes, to - at);
      const piece = Buffer.allocUnsafe(wanted);
      let got = 0;
      for (let bytesRead = -1; got < wanted && bytesRead !== 0; got += bytesRead)
        ({ bytesRead } = await file.read(piece, got, wanted - got, at + got));
      if (got > 0) yield { piece: piece.subarray(0, got), at };
      if (got < wanted) return;
      at += got;
    }
  } finally {
    await file.close();
  }
}

/** A known file, of which a window is in memory. */
class KnownFile {
  readonly #fd: number;
  readonly #bytes: number;
  #window = Buffer.alloc(0);
  #from = 0;
  #to = 0;

  constructor(path: string) {
    this.#fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
    this.#bytes = fstatSync(this.#fd).size;
  }

  /** Whether it has the same bytes at `at` as `piece` at `pieceAt`. */
  has(at: number, piece: Buffer, pieceAt: number, bytes = pageBytes): boolean {
    if (at + bytes > this.#bytes) return false;
    if (at < this.#from || at + bytes > this.#to) this.#read(at);
    if (at + bytes > this.#to) return false;
    const start = at - this.#from;
    return this.#window.compare(piece, pieceAt, pieceAt + bytes, start, start + bytes) === 0;
  }

  #read(at: number): void {
    if (this.#window.length === 0) this.#window = Buffer.allocUnsafe(windowBytes);
    this.#from = at;
    this.#to = at + readSync(this.#fd, this.#window, 0, windowBytes, at);
  }

  close(): void {
    closeSync(this.#fd);
  }
}
