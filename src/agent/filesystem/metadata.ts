import { AtollError } from '../../base/error.ts';
import { fileMetadataHeader } from '../../protocol/agent.ts';
import type { Native } from '../native.ts';

/** Extended attributes that hold what clients attach to files. */
const prefix = 'user.e2b.';
/** Bytes of one file's metadata: names with prefix, and values. ext4 has one block for all attributes of a file. */
const metadataBytesMax = 4096;
/** XATTR_NAME_MAX of Linux is 255 bytes; the prefix takes nine. */
const keyBytesMax = 246;

/** Metadata of a file by name: what E2B clients attach to files, kept in extended attributes. */
export type Metadata = Record<string, string>;

/** The metadata of a file; undefined if there is none. */
export function readMetadata(native: Native, file: string | Uint8Array | number): Metadata | undefined {
  const found: [string, string][] = [];
  for (const [name, value] of native.attributes(file))
    if (name.startsWith(prefix)) found.push([name.slice(prefix.length), value]);
  return found.length > 0 ? Object.fromEntries(found) : undefined;
}

/** Makes `metadata` the only metadata of the open file. Does nothing where the file system keeps none. */
export function replaceMetadata(native: Native, fd: number, metadata: Metadata): void {
  for (const name of native.attributes(fd).keys()) {
    if (name.startsWith(prefix) && !Object.hasOwn(metadata, name.slice(prefix.length)))
      native.removeAttribute(fd, name);
  }
  for (const [key, value] of Object.entries(metadata)) if (!native.setAttribute(fd, prefix + key, value)) return;
}

/**
 * The metadata in the headers `X-Metadata-<key>` of an upload. The runtime joins a repeated header with `, `; over
 * HTTP/1.1, the edge passes only the first.
 */
export function metadataOf(headers: Headers): Metadata {
  const metadata: [string, string][] = [];
  let bytes = 0;
  headers.forEach((value, name) => {
    if (!name.startsWith(fileMetadataHeader)) return;
    const key = name.slice(fileMetadataHeader.length);
    if (key === '' || key.length > keyBytesMax)
      throw new AtollError('invalid', `a metadata key must have 1 to ${keyBytesMax} bytes`);
    if (!/^[\x20-\x7e]*$/.test(value))
      throw new AtollError('invalid', `the metadata value of '${key}' must be printable ASCII`);
    metadata.push([key, value]);
    bytes += prefix.length + key.length + value.length;
  });
  if (bytes > metadataBytesMax)
    throw new AtollError('invalid', `the metadata takes ${bytes} bytes, more than ${metadataBytesMax}`);
  // Every name is a plain key, even `__proto__`.
  return Object.fromEntries(metadata);
}
