import type { FileHandle } from 'node:fs/promises';
import { AtollError } from '../../base/error.ts';

/** Bytes that are read at once. With the socket's own buffer it is all the memory that a download takes. */
const pieceBytes = 256 << 10;

/**
 * The bytes of a file from `start` to `end` (null: as far as it goes) as a body; closes the file in the end. Read only as
 * fast as the client takes it. A file that got shorter meanwhile breaks the answer off: its length was promised already.
 */
export function fileBody(file: FileHandle, start: number, end: number | null): ReadableStream<Uint8Array<ArrayBuffer>> {
  let at = start;
  return new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      async pull(controller) {
        const wanted = end === null ? pieceBytes : Math.min(pieceBytes, end - at);
        const bytes = new Uint8Array(wanted);
        const size = wanted === 0 ? 0 : (await file.read(bytes, 0, wanted, at)).bytesRead;
        at += size;
        if (size > 0) controller.enqueue(size === wanted ? bytes : bytes.subarray(0, size));
        const isOver = end === null ? size === 0 : at === end;
        if (!isOver && size > 0) return;
        await file.close();
        if (isOver) controller.close();
        else controller.error(new AtollError('internal', 'the file became shorter while it was read'));
      },
      cancel: () => file.close(),
    },
    { highWaterMark: 0 },
  );
}
