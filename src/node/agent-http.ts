import { AtollError } from '../base/error.ts';

const headBytesMax = 16 << 10;
/** The line with the size of a chunk. */
const sizeLineBytesMax = 1024;

/** Reads one HTTP/1.1 answer as its bytes come. */
export type HttpReader = {
  /** Takes the next bytes of the connection. Errors: `internal` for what is no answer. */
  take(bytes: Uint8Array): void;
  /** What an answer other than 200 said, as far as it came. */
  failure(): string | undefined;
};

/** `onBody` gets the body of a 200 in parts, without the framing of the transfer (RFC 9112, section 7.1). */
export function createHttpReader(onBody: (part: Uint8Array) => void): HttpReader {
  let buffer: Buffer = Buffer.alloc(0);
  let status: number | undefined;
  let chunked = false;
  let chunkLeft = 0;
  let isOver = false;
  let refusal = '';

  const body = (part: Uint8Array) => {
    if (status === 200) onBody(part);
    else if (refusal.length < headBytesMax) refusal += Buffer.from(part).toString();
  };
  const readHead = (): boolean => {
    const end = buffer.indexOf('\r\n\r\n');
    if (end < 0) {
      if (buffer.length > headBytesMax) throw new AtollError('internal', 'the answer of the agent has too long a head');
      return false;
    }
    const head = buffer.toString('latin1', 0, end);
    status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(head)?.[1]);
    chunked = /\r\ntransfer-encoding: *chunked/i.test(head);
    buffer = buffer.subarray(end + 4);
    return true;
  };
  /** False when the next chunk's size has not come yet. */
  const readChunkSize = (): boolean => {
    const start = buffer.indexOf('\r\n') === 0 ? 2 : 0; // behind the chunk before
    const end = buffer.indexOf('\r\n', start);
    if (end < 0) {
      if (buffer.length > sizeLineBytesMax) throw new AtollError('internal', 'the answer of the agent is malformed');
      return false;
    }
    chunkLeft = Number.parseInt(buffer.toString('latin1', start, end), 16);
    if (!(chunkLeft >= 0)) throw new AtollError('internal', 'the answer of the agent is malformed');
    buffer = buffer.subarray(end + 2);
    isOver = chunkLeft === 0;
    return !isOver;
  };

  return {
    take(bytes) {
      if (isOver) return; // whatever comes behind the last chunk
      buffer = buffer.length ? Buffer.concat([buffer, bytes]) : Buffer.from(bytes);
      if (status === undefined && !readHead()) return;
      if (!chunked) {
        if (buffer.length > 0) body(buffer);
        buffer = Buffer.alloc(0);
        return;
      }
      while (buffer.length > 0 && (chunkLeft > 0 || readChunkSize())) {
        const part = buffer.subarray(0, chunkLeft);
        chunkLeft -= part.length;
        buffer = buffer.subarray(part.length);
        if (part.length > 0) body(part);
      }
    },
    failure: () => (status === undefined || status === 200 ? undefined : `the agent answered ${status}: ${refusal.slice(0, 500)}`),
  };
}
