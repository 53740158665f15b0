import { AtollError } from '../../base/error.ts';
import type { WireError } from './code.ts';

/** Flags of an envelope: one byte, then the length as four bytes (big-endian), then that many bytes. */
const messageFlag = 0;
const compressedFlag = 1;
const endFlag = 2;

const headBytes = 5;
const encoder = new TextEncoder();

/** A message of a stream, ready to send. */
export function encodeMessage(message: unknown): Uint8Array<ArrayBuffer> {
  return enclose(messageFlag, JSON.stringify(message));
}

/** The end of a stream. Without it, a client considers the stream broken. */
export function encodeEnd(error?: WireError): Uint8Array<ArrayBuffer> {
  return enclose(endFlag, JSON.stringify(error === undefined ? {} : { error }));
}

/**
 * A message whose JSON is `before`, the base64 of `bytes`, then `after`, without building it as a string: all output of
 * processes goes through this. `before` and `after` are ASCII.
 */
export function encodeBytesMessage(before: string, bytes: Uint8Array, after: string): Uint8Array<ArrayBuffer> {
  const base64 = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
  const length = before.length + base64.length + after.length;
  const envelope = Buffer.allocUnsafeSlow(headBytes + length);
  writeHead(envelope, messageFlag, length);
  envelope.write(before, headBytes, 'latin1');
  envelope.write(base64, headBytes + before.length, 'latin1');
  envelope.write(after, headBytes + before.length + base64.length, 'latin1');
  return envelope;
}

function enclose(flag: number, json: string): Uint8Array<ArrayBuffer> {
  const payload = encoder.encode(json);
  const envelope = new Uint8Array(headBytes + payload.length);
  writeHead(envelope, flag, payload.length);
  envelope.set(payload, headBytes);
  return envelope;
}

function writeHead(envelope: Uint8Array, flag: number, length: number): void {
  envelope[0] = flag;
  envelope[1] = length >>> 24;
  envelope[2] = length >>> 16;
  envelope[3] = length >>> 8;
  envelope[4] = length;
}

/**
 * The messages of a request body, as JSON values, as they arrive. Ends with the body or with the client's end envelope.
 * Refuses messages longer than `messageBytesMax`, and compressed ones, because we never offered to accept them.
 */
export async function* readMessages(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array> | null,
  messageBytesMax: number,
): AsyncGenerator<unknown> {
  if (body === null) return;
  const parts: Uint8Array[] = [];
  let available = 0;
  const take = (length: number): Uint8Array => {
    const all = parts.length === 1 && parts[0] ? parts[0] : concatenate(parts, available);
    parts.length = 0;
    available -= length;
    if (available > 0) parts.push(all.subarray(length));
    return all.subarray(0, length);
  };
  let head: { flag: number; length: number } | undefined;
  for await (const chunk of body) {
    parts.push(chunk);
    available += chunk.length;
    for (;;) {
      if (!head) {
        if (available < headBytes) break;
        head = parseHead(take(headBytes));
        if (head.length > messageBytesMax)
          throw new AtollError('too_large', `a message of ${head.length} bytes is longer than ${messageBytesMax}`);
      }
      if (available < head.length) break;
      const payload = take(head.length);
      if (head.flag & endFlag) return;
      head = undefined;
      yield parseJson(payload);
    }
  }
  if (head || available > 0) throw new AtollError('invalid', 'the request ends in the middle of a message');
}

function parseHead(bytes: Uint8Array): { flag: number; length: number } {
  const [flag = 0, a = 0, b = 0, c = 0, d = 0] = bytes;
  if (flag & compressedFlag) throw new AtollError('unimplemented', 'compressed messages are not accepted');
  return { flag, length: ((a << 24) | (b << 16) | (c << 8) | d) >>> 0 };
}

/** A JSON value from bytes; an empty message is the empty object. */
export function parseJson(bytes: Uint8Array): unknown {
  if (bytes.length === 0) return {};
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch (error) {
    throw new AtollError('invalid', 'the message is not valid JSON', { cause: error });
  }
}

function concatenate(parts: Uint8Array[], length: number): Uint8Array {
  const all = new Uint8Array(length);
  let offset = 0;
  for (const part of parts) {
    all.set(part, offset);
    offset += part.length;
  }
  return all;
}
