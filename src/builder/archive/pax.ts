import { AtollError } from '../../base/error.ts';
import { isStorable } from '../erofs/format.ts';
import type { ByteString } from '../erofs/tree.ts';

/** The content of extended headers, for the entry that follows them (pax(1), "pax Extended Header"). */
export type Extension = {
  path?: ByteString;
  target?: ByteString;
  size?: number;
  uid?: number;
  gid?: number;
  mtimeSeconds?: number;
  mtimeNanoseconds?: number;
  xattrs: Map<string, Uint8Array>;
  sparse?: boolean;
};

/** An extended header without records. */
export const emptyExtension = (): Extension => ({ xattrs: new Map() });

const xattrPrefix = 'SCHILY.xattr.';
/**
 * Attributes that an archive may set: `trusted.*` belongs to the overlay, the others to a security module of the host.
 */
const allowedXattr = /^(user\.|security\.capability$)/;

/** Digits of a record's length, and bytes of all attributes of a file: more than any Linux file system keeps. */
const lengthDigitsMax = 10;
const xattrsBytesMax = 64 << 10;

/**
 * Reads the records of a pax header (`length key=value\n`). `text` has one character per byte. Errors: `invalid` if it
 * is no such header, or has more attributes than a file can have.
 */
export function extensionOfPax(text: string): Extension {
  const extension = emptyExtension();
  for (let at = 0; at < text.length;) {
    // The number is searched only this far: a longer one would be read again for each record.
    const digits = /^[0-9]+ /.exec(text.slice(at, at + lengthDigitsMax + 1))?.[0] ?? '';
    const end = at + Number.parseInt(digits, 10);
    const start = at + digits.length;
    const equals = text.indexOf('=', start);
    if (!(end > start) || text[end - 1] !== '\n' || equals < 0 || equals >= end)
      throw new AtollError('invalid', 'the archive has a malformed extended header');
    take(extension, text.slice(start, equals), text.slice(equals + 1, end - 1));
    at = end;
  }
  let bytes = 0;
  for (const [name, value] of extension.xattrs) bytes += name.length + value.length;
  if (bytes > xattrsBytesMax)
    throw new AtollError('invalid', `the archive has a file with more than ${xattrsBytesMax} bytes of attributes`);
  return extension;
}

/** A whole number as pax writes it, NaN for anything else, such as `1e3` and `0x10`. */
function wholeNumber(text: string): number {
  return /^-?[0-9]{1,18}$/.test(text) ? Number(text) : Number.NaN;
}

function take(extension: Extension, key: string, value: string): void {
  if (key === 'path') extension.path = value;
  else if (key === 'linkpath') extension.target = value;
  else if (key === 'size') extension.size = wholeNumber(value);
  else if (key === 'uid') extension.uid = wholeNumber(value);
  else if (key === 'gid') extension.gid = wholeNumber(value);
  else if (key === 'mtime') {
    const [, seconds = '', fraction = ''] = /^(-?[0-9]{1,18})(?:\.([0-9]{1,9})[0-9]*)?$/.exec(value) ?? [];
    // Before the epoch, nanoseconds count up from the second below.
    const nanoseconds = Number(fraction.padEnd(9, '0'));
    const before = seconds.startsWith('-') && nanoseconds > 0;
    extension.mtimeSeconds = Number(seconds) - Number(before);
    extension.mtimeNanoseconds = before ? 1_000_000_000 - nanoseconds : nanoseconds;
  } else if (key.startsWith('GNU.sparse.')) extension.sparse = true;
  else if (key.startsWith(xattrPrefix)) {
    const name = key.slice(xattrPrefix.length);
    if (allowedXattr.test(name) && isStorable(name) && value.length < 65_536)
      extension.xattrs.set(name, Buffer.from(value, 'latin1'));
  }
}
