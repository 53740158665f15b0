import type { FileHandle } from 'node:fs/promises';
import { AtollError } from '../../base/error.ts';
import type { Range } from './range.ts';

/** A file up to this size is answered from memory, in one piece and with its length. */
const wholeBytesMax = 1 << 20;
/**
 * Bytes per read from a larger file. Together with the socket's own buffer, this is all the memory that a download
 * takes.
 */
const pieceBytes = 1 << 20;

/** The bytes of a file from `start` to `end`, or to its actual end; undefined if they are more than `wholeBytesMax`. */
export async function readWhole(
  file: FileHandle,
  start: number,
  end: number,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  if (end - start > wholeBytesMax && end !== Number.POSITIVE_INFINITY) return undefined;
  const bytes = new Uint8Array(Math.min(end - start, wholeBytesMax + 1));
  let length = 0;
  for (let size = -1; size !== 0 && length < bytes.length; length += size)
    size = (await file.read(bytes, length, bytes.length - length, start + length)).bytesRead;
  return length > wholeBytesMax ? undefined : bytes.subarray(0, length);
}

/**
 * Closes a file whose client leaves before its answer begins: the runtime neither pulls nor cancels such a body.
 * Whoever begins to read calls the answered function, and from then on closes the file.
 */
export function closeUnread(file: FileHandle, { signal }: Pick<Request, 'signal'>): () => void {
  const close = () => void file.close();
  if (signal.aborted) close();
  else signal.addEventListener('abort', close, { once: true });
  return () => signal.removeEventListener('abort', close);
}

/**
 * The bytes of a file from `start` to `end` (infinity: its end) as a body, read only as fast as the client takes it;
 * closes the file at the end. If the file became shorter, the answer breaks off, because its length was promised.
 */
export function streamFile(
  file: FileHandle,
  { start, end }: Range,
  onBegin: () => void,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  let isWanted = true;
  // With Bun's direct stream, one buffer is enough for the whole file: it is free again after each flush.
  const source: Bun.DirectUnderlyingSource<Uint8Array<ArrayBuffer>> = {
    type: 'direct',
    async pull(controller) {
      onBegin();
      try {
        const bytes = new Uint8Array(pieceBytes);
        for (let at = start; isWanted && at < end;) {
          const { bytesRead } = await file.read(bytes, 0, Math.min(pieceBytes, end - at), at);
          if (bytesRead === 0 && end === Number.POSITIVE_INFINITY) break;
          if (bytesRead === 0) throw new AtollError('internal', 'the file became shorter while it was read');
          void controller.write(bytes.subarray(0, bytesRead));
          await controller.flush(true);
          at += bytesRead;
        }
      } finally {
        await file.close();
      }
      if (isWanted) controller.close();
    },
    cancel() {
      isWanted = false;
    },
  };
  return new ReadableStream(source);
}

/** The same in pieces, for callers that transform them. Ends early if the file became shorter. */
export async function* readPieces(
  file: FileHandle,
  { start, end }: Range,
  onBegin: () => void,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  onBegin();
  try {
    for (let at = start; at < end;) {
      const bytes = new Uint8Array(Math.min(pieceBytes / 4, end - at));
      const { bytesRead } = await file.read(bytes, 0, bytes.length, at);
      if (bytesRead === 0) return;
      yield bytes.subarray(0, bytesRead);
      at += bytesRead;
    }
  } finally {
    await file.close();
  }
}
