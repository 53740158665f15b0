import { isStorable } from '../erofs/format.ts';
import type { ByteString } from '../erofs/tree.ts';

/** What extended headers say about the entry that follows them. */
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

export const emptyExtension = (): Extension => ({ xattrs: new Map() });

const xattrPrefix = 'SCHILY.xattr.';
/** Attributes that an archive may set: `trusted.*` belongs to the overlay, the rest to a security module of the host. */
const allowedXattr = /^(user\.|security\.capability$)/;

/** Reads the records of a pax header (`length key=value\n`). `text` has one character for each byte. */
export function extensionOfPax(text: string): Extension {
  const extension = emptyExtension();
  for (let at = 0; at < text.length; ) {
    const space = text.indexOf(' ', at);
    const length = Number.parseInt(text.slice(at, space), 10);
    if (space < 0 || !(length > 0)) break;
    const record = text.slice(space + 1, at + length - 1);
    const equals = record.indexOf('=');
    take(extension, record.slice(0, equals), record.slice(equals + 1));
    at += length;
  }
  return extension;
}

function take(extension: Extension, key: string, value: string): void {
  if (key === 'path') extension.path = value;
  else if (key === 'linkpath') extension.target = value;
  else if (key === 'size') extension.size = Number(value);
  else if (key === 'uid') extension.uid = Number(value);
  else if (key === 'gid') extension.gid = Number(value);
  else if (key === 'mtime') {
    extension.mtimeSeconds = Math.floor(Number(value));
    extension.mtimeNanoseconds = Number((/\.(\d{1,9})/.exec(value)?.[1] ?? '').padEnd(9, '0')) || 0;
  } else if (key.startsWith('GNU.sparse.')) extension.sparse = true;
  else if (key.startsWith(xattrPrefix)) {
    const name = key.slice(xattrPrefix.length);
    if (allowedXattr.test(name) && isStorable(name) && value.length < 65_536) extension.xattrs.set(name, Buffer.from(value, 'latin1'));
  }
}
