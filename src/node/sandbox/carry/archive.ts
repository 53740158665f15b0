import { closeSync, constants, fstatSync, openSync, readdirSync } from 'node:fs';
import { mkdir, open, rename, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { AtollError } from '../../../base/error.ts';
import { extentsOf } from './extents.ts';
import type { Copy } from './known-pages.ts';
import { parseJson } from '../../../base/json-text.ts';

/** A record and files in one stream: the length of the header (4 bytes), the header, and the data of the files. */
export type ArchiveHeader<Content> = {
  version: 1;
  record: Content;
  /** Digest of the agent that the sandbox was started with. */
  agent: string;
  files: ArchivedFile[];
  /** The draft that the receiver has: its ID, and its files, to which `copies` refer by number. */
  draft?: { draftId: string; files: string[] };
};

/** Finds the folder of a draft; undefined if the draft is not here. */
export type FindDraft = (draftId: string) => string | undefined;

/** A file of an archive. */
export type ArchivedFile = {
  /** Relative, e.g. `memory/core-1.img`. */
  path: string;
  sizeBytes: number;
  mode: number;
  /** The parts of it that are in the stream. */
  extents: [at: number, bytes: number][];
  /** It begins as a copy of the draft's file at this path. */
  isDrafted?: boolean;
  /** The parts of it that are in files of the draft. */
  copies?: Copy[];
};

const lengthBytes = 4;
const headerBytesMax = 64 << 20;
const filesMax = 100_000;
const pieceBytes = 1 << 20;
const modeBits = 0o777;
/** Names of kept files, one or two folders deep. They can't lead anywhere else. */
const pathForm = /^[\w-][\w.-]*(\/[\w-][\w.-]*)*$/;

/** The files of a folder, as an archive describes them; `skips` tells which to leave out. */
export function planFiles(folder: string, skips: (path: string) => boolean): ArchivedFile[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .filter(path => !skips(path))
    .toSorted()
    .map(path => {
      const fd = openSync(join(folder, path), constants.O_RDONLY | constants.O_NOFOLLOW);
      try {
        const { size, mode } = fstatSync(fd);
        return { path, sizeBytes: size, mode: mode & modeBits, extents: extentsOf(fd, size) };
      } finally {
        closeSync(fd);
      }
    });
}

/** Bytes of an archive. */
export function archiveBytes(header: ArchiveHeader<unknown>): number {
  const data = header.files.flatMap(({ extents }) => extents).reduce((sum, [, bytes]) => sum + bytes, 0);
  return lengthBytes + Buffer.byteLength(JSON.stringify(header)) + data;
}

/** Bytes that the files of an archive take once written: those that arrive, and those copied from a draft. */
function writtenBytes({ files }: ArchiveHeader<unknown>): number {
  const stretches = files.flatMap(({ extents, copies = [] }) => [...extents, ...copies]);
  return stretches.reduce((sum, [, bytes]) => sum + bytes, 0);
}

/** The archive of a folder. Fails if a file is shorter than when it was planned. */
export async function* readArchive(folder: string, header: ArchiveHeader<unknown>): AsyncGenerator<Uint8Array> {
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt32BE(text.length);
  yield length;
  yield text;
  for (const { path, extents } of header.files) {
    const file = await open(join(folder, path), constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      for (const [at, bytes] of extents) yield* readExtent(file, path, at, bytes);
    } finally {
      await file.close();
    }
  }
}

async function* readExtent(file: FileHandle, path: string, at: number, bytes: number): AsyncGenerator<Uint8Array> {
  for (let done = 0; done < bytes;) {
    const wanted = Math.min(pieceBytes, bytes - done);
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(wanted), 0, wanted, at + done);
    if (bytesRead === 0) throw new AtollError('internal', `${path} has become shorter while it was read`);
    done += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

/**
 * Writes an archive into an empty folder, and answers its header. It uses up a draft that it refers to. `admit` is
 * called before the first file with the bytes that all of them will take, and may throw. Errors: `invalid` for a
 * malformed archive.
 */
export async function writeArchive<Content>(
  source: AsyncIterable<Uint8Array>,
  folder: string,
  findDraft: FindDraft = () => undefined,
  admit: (bytes: number) => void = () => {},
): Promise<ArchiveHeader<Content>> {
  const bytes = new Reader(source);
  try {
    // Only `readArchive` writes them.
    return (await writeFiles(bytes, folder, findDraft, admit)) as ArchiveHeader<Content>;
  } finally {
    await bytes.close();
  }
}

async function writeFiles(
  bytes: Reader,
  folder: string,
  findDraft: FindDraft,
  admit: (bytes: number) => void,
): Promise<ArchiveHeader<unknown>> {
  const length = (await bytes.take(lengthBytes)).readUInt32BE(0);
  if (length > headerBytesMax) throw wrong('its header is too long');
  const header = headerOf((await bytes.take(length)).toString('utf8'));
  admit(writtenBytes(header));
  const draft = header.draft && findDraft(header.draft.draftId);
  if (header.draft && draft === undefined) throw wrong('the draft that it refers to is not here');
  await using known = await openAll(header.draft?.files.map(path => join(draft ?? '', path)) ?? []);
  for (const { path, sizeBytes, mode, extents, isDrafted, copies = [] } of header.files) {
    const to = join(folder, path);
    await mkdir(dirname(to), { recursive: true, mode: 0o700 });
    if (isDrafted && draft !== undefined) await rename(join(draft, path), to);
    const file = await open(to, isDrafted ? 'r+' : 'wx', mode & modeBits);
    try {
      await file.truncate(sizeBytes);
      for (const [at, count] of extents) await writeExtent(bytes, file, at, count);
      for (const copy of copies) await writeCopy(known.files, file, copy);
    } finally {
      await file.close();
    }
  }
  if (!(await bytes.isOver())) throw wrong('there is more in it than it says');
  return header;
}

async function writeExtent(bytes: Reader, file: FileHandle, at: number, count: number): Promise<void> {
  for (let done = 0; done < count;) {
    const piece = await bytes.some(count - done);
    await writeAll(file, piece, at + done);
    done += piece.length;
  }
}

/** Opens files for reading; all are closed together. */
async function openAll(paths: readonly string[]): Promise<AsyncDisposable & { files: FileHandle[] }> {
  await using opened = new AsyncDisposableStack();
  const files: FileHandle[] = [];
  for (const path of paths) {
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
    opened.defer(() => file.close());
    files.push(file);
  }
  const disposal = opened.move();
  return { files, [Symbol.asyncDispose]: () => disposal.disposeAsync() };
}

async function writeCopy(known: FileHandle[], file: FileHandle, [at, bytes, number, from]: Copy): Promise<void> {
  const source = known[number];
  if (!source) throw wrong('it refers to a file that it does not name');
  for (let done = 0; done < bytes;) {
    const wanted = Math.min(pieceBytes, bytes - done);
    const { bytesRead, buffer } = await source.read(Buffer.allocUnsafe(wanted), 0, wanted, from + done);
    if (bytesRead === 0) throw wrong('the draft that it refers to is another one');
    await writeAll(file, buffer.subarray(0, bytesRead), at + done);
    done += bytesRead;
  }
}

async function writeAll(file: FileHandle, piece: Uint8Array, at: number): Promise<void> {
  for (let written = 0; written < piece.length;)
    written += (await file.write(piece, written, piece.length - written, at + written)).bytesWritten;
}

/** Only a holder of the key can have written it; the places in it are still checked. */
function headerOf(text: string): ArchiveHeader<unknown> {
  const header = parseJson(text) as ArchiveHeader<unknown> | null | undefined;
  if (!header) throw wrong('its header is no JSON');
  if (header.version !== 1 || !Array.isArray(header.files) || header.files.length > filesMax)
    throw wrong('it is of another version of Atoll');
  const drafted: unknown = header.draft ? header.draft.files : [];
  if (!Array.isArray(drafted) || drafted.length > filesMax || !drafted.every(path => pathForm.test(`${path}`)))
    throw wrong('a file of its draft has no proper name');
  if (!header.draft && header.files.some(({ isDrafted }) => isDrafted)) throw wrong('it names no draft');
  for (const { path, sizeBytes, extents, copies = [] } of header.files) {
    if (!pathForm.test(path)) throw wrong('a file of it has no proper name');
    for (const places of [extents, copies]) requireOrder(path, places, sizeBytes);
    if (!copies.every(([, , , from]) => Number.isSafeInteger(from) && from >= 0))
      throw wrong(`${path} does not fit together`);
  }
  return header;
}

/** Checks that the parts of a file come one after another, and end within it. */
function requireOrder(path: string, places: readonly (readonly number[])[], sizeBytes: number): void {
  let end = 0;
  for (const [at = -1, bytes = 0] of places) {
    if (!Number.isSafeInteger(at) || !(bytes > 0) || at < end || at + bytes > sizeBytes)
      throw wrong(`${path} does not fit together`);
    end = at + bytes;
  }
}

const wrong = (why: string) => new AtollError('invalid', `what came is not what was sent: ${why}`);

/** Takes as many bytes of a stream as the caller asks for. */
class Reader {
  readonly #source: AsyncIterator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array();

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Takes exactly this many. */
  async take(count: number): Promise<Buffer> {
    const parts: Uint8Array[] = [];
    for (let left = count; left > 0;) {
      const part = await this.some(left);
      parts.push(part);
      left -= part.length;
    }
    return Buffer.concat(parts);
  }

  /** Takes at least one byte and at most `max`. */
  async some(max: number): Promise<Uint8Array> {
    if (!(await this.#fill())) throw wrong('it ends too early');
    const part = this.#rest.subarray(0, max);
    this.#rest = this.#rest.subarray(part.length);
    return part;
  }

  async isOver(): Promise<boolean> {
    return !(await this.#fill());
  }

  async close(): Promise<void> {
    await this.#source.return?.();
  }

  async #fill(): Promise<boolean> {
    while (this.#rest.length === 0) {
      const next = await this.#source.next();
      if (next.done) return false;
      this.#rest = next.value;
    }
    return true;
  }
}
