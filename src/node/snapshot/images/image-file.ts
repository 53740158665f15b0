import { readFile, stat, writeFile } from 'node:fs/promises';
import { AtollError } from '../../../base/error.ts';
import { decodeFields, encodeFields, type Field } from './protobuf.ts';

const magicBytes = 8;
const lengthBytes = 4;
/**
 * The largest image that is read. A sandbox decides how many entries there are, one for each open file: 290,000 files
 * with short names or 136,000 sockets take as much.
 */
const imageBytesMax = 16 << 20;
/** How long all other work of the node waits at a time, and after how many entries the clock is read. */
const turnMs = 5;
const entriesPerLook = 64;

/**
 * Reads all entries of an image of CRIU. An image is two magic numbers, then messages, each after its length (32 bits,
 * little-endian). Source: criu.org/Images. Errors: `precondition` for one that is too large.
 */
export async function lookThrough(path: string, look: (entry: Field[]) => void): Promise<void> {
  await eachMessage(path, message => look(decodeFields(message)));
}

/**
 * Rewrites an image entry by entry; `change` answers an entry itself if it stays unchanged. The file is replaced
 * instead of written into: other directories may share its old content by hard links. Errors: `precondition` for one
 * that is too large.
 */
export async function rewriteImage(from: string, to: string, change: (entry: Field[]) => Field[]): Promise<void> {
  const parts: Uint8Array[] = [];
  /** Up to here the image is in `parts`: unchanged content is copied in large pieces. */
  let copied = 0;
  const bytes = await eachMessage(from, (message, { at, end, bytes }) => {
    const entry = decodeFields(message);
    const changed = change(entry);
    if (changed === entry) return;
    const encoded = encodeFields(changed);
    const length = Buffer.alloc(lengthBytes);
    length.writeUInt32LE(encoded.length);
    parts.push(bytes.subarray(copied, at), length, encoded);
    copied = end;
  });
  parts.push(bytes.subarray(copied));
  await writeFile(to, Buffer.concat(parts), { mode: 0o600 });
}

/** Where a message, including its length, is in an image. */
type Place = { at: number; end: number; bytes: Buffer };

/** Takes the messages of an image, and answers its bytes. Other work gets a turn from time to time. */
async function eachMessage(path: string, take: (message: Uint8Array, place: Place) => void): Promise<Buffer> {
  const { size } = await stat(path);
  if (size > imageBytesMax)
    throw new AtollError(
      'precondition',
      `the memory of the sandbox can’t be kept: too many files and sockets are open in it (in a checkpoint they take ` +
        `${size} bytes, and may take ${imageBytesMax})`,
    );
  const bytes = await readFile(path);
  let turnEnds = performance.now() + turnMs;
  for (let at = magicBytes, entries = 1; at < bytes.length; entries++) {
    const from = at + lengthBytes;
    const end = from <= bytes.length ? from + bytes.readUInt32LE(at) : Number.POSITIVE_INFINITY;
    if (end > bytes.length) throw new AtollError('internal', `the checkpoint image ${path} is cut off`);
    take(bytes.subarray(from, end), { at, end, bytes });
    at = end;
    if (entries % entriesPerLook !== 0 || performance.now() < turnEnds) continue;
    await new Promise(resolve => setImmediate(resolve));
    turnEnds = performance.now() + turnMs;
  }
  return bytes;
}
