import { AtollError } from '../../base/error.ts';
import type { Attributes, ByteString } from '../erofs/tree.ts';
import { createByteReader, type ByteReader } from './byte-reader.ts';
import { emptyExtension, extensionOfPax, type Extension } from './pax.ts';

/** Kinds of entries that reach a layer. `link` is another name of a file that precedes it in the archive. */
type TarEntryType = 'file' | 'link' | 'symlink' | 'directory' | 'fifo' | 'device';

/** An entry of an archive; its content follows in the stream. */
export type TarEntry = {
  type: TarEntryType;
  /** As written in the archive, unchecked. */
  path: ByteString;
  /** Target of a `link` or `symlink`. */
  target: ByteString;
  attributes: Attributes;
  size: number;
  /** Where its content begins in the uncompressed archive. */
  offset: number;
  /** Passes on the content of a `file`. Content that nobody requests is skipped. */
  content(take: (part: Uint8Array) => void): Promise<void>;
};

const blockSize = 512;
/** Limit of the headers that extend an entry: names and extended attributes. */
const extensionBytesMax = 1 << 20;

const types: Record<string, TarEntryType> = {
  '\0': 'file',
  '0': 'file',
  '7': 'file',
  '1': 'link',
  '2': 'symlink',
  '3': 'device',
  '4': 'device',
  '5': 'directory',
  '6': 'fifo',
};

/**
 * The entries of a tar archive in order: ustar, pax (POSIX.1-2001) and GNU's long names.
 * Errors: `invalid` for anything that is not a whole tar archive.
 */
export async function* readTar(source: AsyncIterable<Uint8Array>): AsyncGenerator<TarEntry> {
  const reader = createByteReader(source);
  let extension = emptyExtension();
  for (let header; (header = await reader.read(blockSize));) {
    if (header.every(byte => byte === 0)) continue; // padding, or the end
    checkSum(header);
    const flag = String.fromCharCode(header[156] ?? 0);
    const size = extension.size ?? numberAt(header, 124, 12);
    if (!Number.isSafeInteger(size) || size < 0)
      throw new AtollError('invalid', 'the archive has an entry of impossible size');
    if ('xgLK'.includes(flag)) {
      const text = await readExtension(reader, numberAt(header, 124, 12));
      if (flag === 'x') extension = { ...extension, ...extensionOfPax(text) };
      if (flag === 'L') extension.path = text.split('\0')[0] ?? '';
      if (flag === 'K') extension.target = text.split('\0')[0] ?? '';
      continue;
    }
    const type = types[flag];
    if (flag === 'S' || extension.sparse)
      throw new AtollError(
        'invalid',
        'the archive holds a sparse file in a form that is not supported; make it without --sparse',
      );
    let unread = type === 'file' || type === undefined ? size : 0;
    const forward = (take: (part: Uint8Array) => void) => {
      const count = unread;
      unread = 0;
      return reader.forward(count, take);
    };
    const padding = (blockSize - (unread % blockSize)) % blockSize;
    if (type !== undefined)
      yield { ...describe(header, type, extension), size: unread, offset: reader.position(), content: forward };
    await forward(() => {});
    await reader.forward(padding, () => {});
    extension = emptyExtension();
  }
}

function describe(
  header: Uint8Array,
  type: TarEntryType,
  extension: Extension,
): Omit<TarEntry, 'size' | 'offset' | 'content'> {
  // In GNU's own form, the place of ustar's prefix holds times.
  const ustar = textAt(header, 257, 6) === 'ustar';
  const prefix = ustar ? textAt(header, 345, 155) : '';
  const name = textAt(header, 0, 100);
  const path = extension.path ?? (prefix ? `${prefix}/${name}` : name);
  return {
    // Archives older than POSIX mark directories only by their name.
    type: type === 'file' && path.endsWith('/') ? 'directory' : type,
    path,
    target: extension.target ?? textAt(header, 157, 100),
    attributes: {
      mode: numberAt(header, 100, 8) & 0o7777,
      uid: idOf(extension.uid ?? numberAt(header, 108, 8)),
      gid: idOf(extension.gid ?? numberAt(header, 116, 8)),
      mtimeSeconds: timeOf(extension.mtimeSeconds ?? numberAt(header, 136, 12)),
      mtimeNanoseconds: extension.mtimeNanoseconds ?? 0,
      xattrs: extension.xattrs,
    },
  };
}

/** User IDs beyond those of a sandbox become root's: a sandbox could not show them. */
function idOf(id: number): number {
  return Number.isInteger(id) && id >= 0 && id < 65_536 ? id : 0;
}

/** A time outside the range of clocks becomes 1970. */
function timeOf(seconds: number): number {
  return Number.isSafeInteger(seconds) ? seconds : 0;
}

async function readExtension(reader: ByteReader, size: number): Promise<string> {
  if (!(size >= 0 && size <= extensionBytesMax))
    throw new AtollError('invalid', 'the archive has an entry with too long a name or attributes');
  const bytes = size > 0 ? await reader.read(Math.ceil(size / blockSize) * blockSize) : new Uint8Array(0);
  if (!bytes) throw new AtollError('invalid', 'the archive ends in the middle of an entry');
  return Buffer.from(bytes.subarray(0, size)).toString('latin1');
}

function checkSum(header: Uint8Array): void {
  const wanted = numberAt(header, 148, 8);
  let sum = 8 * 32;
  for (let i = 0; i < blockSize; i++) if (i < 148 || i >= 156) sum += header[i] ?? 0;
  if (sum !== wanted) throw new AtollError('invalid', 'this is not a tar archive');
}

function textAt(header: Uint8Array, offset: number, length: number): string {
  const field = Buffer.from(header.buffer, header.byteOffset + offset, length);
  const end = field.indexOf(0);
  return field.toString('latin1', 0, end < 0 ? length : end);
}

/** Octal digits, or GNU's big-endian binary form marked by the first bit. */
function numberAt(header: Uint8Array, offset: number, length: number): number {
  const first = header[offset] ?? 0;
  if (first & 0x80) {
    const negative = (first & 0x40) !== 0;
    let value = BigInt(negative ? first | ~0xff : first & 0x3f);
    for (let i = 1; i < length; i++) value = (value << 8n) | BigInt(header[offset + i] ?? 0);
    return Number(value);
  }
  const text = textAt(header, offset, length).trim();
  return text === '' ? 0 : Number.parseInt(text, 8);
}
