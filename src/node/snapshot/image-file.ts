import { readFileSync, writeFileSync } from 'node:fs';
import { AtollError } from '../../base/error.ts';
import { decodeFields, encodeFields, type Field } from './protobuf.ts';

const magicBytes = 8;

/**
 * Rewrites an image of CRIU entry by entry. The file is replaced and not written into: its old content may be shared
 * with other directories by hard links. An image is two magic numbers, then messages with their length (32 bits,
 * little-endian) in front. Source: criu.org/Images.
 */
export function rewriteImage(from: string, to: string, change: (entries: Field[][]) => Field[][]): void {
  const bytes = readFileSync(from);
  const entries = entriesOf(bytes, from);
  const parts: Uint8Array[] = [bytes.subarray(0, magicBytes)];
  for (const fields of change(entries)) {
    const message = encodeFields(fields);
    const length = Buffer.alloc(4);
    length.writeUInt32LE(message.length);
    parts.push(length, message);
  }
  writeFileSync(to, Buffer.concat(parts), { mode: 0o600 });
}

/** The messages of an image. */
export function readImage(path: string): Field[][] {
  return entriesOf(readFileSync(path), path);
}

function entriesOf(bytes: Buffer, path: string): Field[][] {
  const entries: Field[][] = [];
  for (let at = magicBytes; at < bytes.length;) {
    const length = at + 4 <= bytes.length ? bytes.readUInt32LE(at) : Number.POSITIVE_INFINITY;
    if (at + 4 + length > bytes.length) throw new AtollError('internal', `the checkpoint image ${path} is cut off`);
    entries.push(decodeFields(bytes.subarray(at + 4, at + 4 + length)));
    at += 4 + length;
  }
  return entries;
}
