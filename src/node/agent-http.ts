import { AtollError } from '../base/error.ts';

const headBytesMax = 16 << 10;
/** The line with the size of a chunk. */
const sizeLineBytesMax = 1024;
/** Of what an answer other than 200 says. */
const refusalBytesMax = 500;

/** Reads one HTTP/1.1 answer as its bytes come. However small the parts are, no byte is looked at twice. */
export type HttpReader = {
  /** Takes the next bytes of the connection. Errors: `internal` for what is no answer. */
  take(bytes: Uint8Array): void;
  /** Undefined as long as the head has not come. */
  status(): number | undefined;
  /** The whole body has come, by its length or its last chunk; a body without either ends with the connection. */
  isOver(): boolean;
  /** What an answer other than 200 said, as far as it came. */
  failure(): string | undefined;
};

/**
 * `onBody` gets the body of a 200 in parts, without the framing of the transfer (RFC 9112, section 7.1). The answer comes from
 * among strangers, who can take the agent's place: what is kept of it is bounded, and work is in proportion to its bytes.
 */
export function createHttpReader(onBody: (part: Uint8Array) => void): HttpReader {
  const head = createLine(headBytesMax, '\r\n\r\n', 'the answer of the agent has too long a head');
  const sizeLine = createLine(sizeLineBytesMax, '\r\n', 'the answer of the agent is malformed');
  const refusal: Buffer[] = [];
  let refusalLeft = refusalBytesMax;
  let status: number | undefined;
  let framing: 'chunks' | 'length' | 'connection' = 'connection';
  /** Bytes that are still to come: of the chunk, or of the body. */
  let left = 0;
  let behindChunk = false;
  let isOver = false;

  const body = (part: Uint8Array) => {
    if (part.length === 0) return;
    if (status === 200) return onBody(part);
    if (refusalLeft === 0) return;
    const kept = Buffer.from(part.subarray(0, refusalLeft));
    refusal.push(kept);
    refusalLeft -= kept.length;
  };
  const readHead = (text: string) => {
    status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(text)?.[1]);
    if (Number.isNaN(status)) throw new AtollError('internal', 'the agent’s answer is none');
    const length = /\r\ncontent-length: {0,8}(\d{1,15})\r\n/i.exec(text)?.[1];
    if (/\r\ntransfer-encoding: {0,8}chunked\r\n/i.test(text)) framing = 'chunks';
    else if (length !== undefined) [framing, left] = ['length', Number(length)];
    isOver = status === 204 || (framing === 'length' && left === 0);
  };
  const readSize = (line: string) => {
    // The line end of the chunk before.
    if (behindChunk && line === '\r\n') return void (behindChunk = false);
    const digits = /^[0-9a-f]{1,8}(?=[;\r])/i.exec(line)?.[0];
    if (behindChunk || digits === undefined) throw new AtollError('internal', 'the answer of the agent is malformed');
    left = Number.parseInt(digits, 16);
    isOver = left === 0;
  };

  return {
    take(bytes) {
      for (let at = 0; at < bytes.length && !isOver; ) {
        if (status === undefined) {
          at += head.take(bytes.subarray(at), readHead);
        } else if (framing === 'chunks' && left === 0) {
          at += sizeLine.take(bytes.subarray(at), readSize);
        } else {
          const part = framing === 'connection' ? bytes.subarray(at) : bytes.subarray(at, at + left);
          at += part.length;
          if (framing !== 'connection') left -= part.length;
          behindChunk = framing === 'chunks' && left === 0;
          if (framing === 'length') isOver = left === 0;
          body(part);
        }
      }
    },
    status: () => status,
    isOver: () => isOver,
    failure: () => (status === undefined || status === 200 ? undefined : `the agent answered ${status}: ${Buffer.concat(refusal).toString()}`),
  };
}

/** Collects bytes up to and with an ending. `take` answers how many of those given belong to it, and hands it over where it is whole. */
function createLine(bytesMax: number, ending: string, tooLong: string) {
  const kept = Buffer.alloc(bytesMax);
  let used = 0;
  return {
    take(bytes: Uint8Array, whole: (text: string) => void): number {
      const added = Math.min(bytes.length, bytesMax - used);
      kept.set(bytes.subarray(0, added), used);
      const found = kept.subarray(0, used + added).indexOf(ending, Math.max(0, used - ending.length + 1), 'latin1');
      if (found < 0) {
        used += added;
        if (used === bytesMax) throw new AtollError('internal', tooLong);
        return added;
      }
      const end = found + ending.length;
      const taken = end - used;
      used = 0;
      whole(kept.toString('latin1', 0, end));
      return taken;
    },
  };
}
