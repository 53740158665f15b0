import { createHash } from 'node:crypto';

/** The kinds of frames (RFC 6455 5.2). */
export const opcode = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

/** Why a connection is closed (RFC 6455 7.4.1). */
export const closeCode = { normal: 1000, protocolError: 1002, unsupported: 1003 } as const;

/** The longest head of a frame that we write: ours are unmasked. */
export const frameHeadBytesMax = 10;
const controlBytesMax = 125;
const maskBytes = 4;

/** The proof that a server speaks WebSocket (RFC 6455 4.2.2). */
export function acceptOf(key: string): string {
  return createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
}

/** Writes the head of a whole message of `length` bytes to `out`, and answers the size of the head. */
export function writeFrameHead(out: Buffer, code: number, length: number): number {
  out[0] = 0x80 | code;
  if (length <= controlBytesMax) {
    out[1] = length;
    return 2;
  }
  if (length <= 0xffff) {
    out[1] = 126;
    return out.writeUInt16BE(length, 2);
  }
  out[1] = 127;
  return out.writeBigUInt64BE(BigInt(length), 2);
}

/** A control frame, or a short message, ready to send. */
export function shortFrame(code: number, payload: Uint8Array = new Uint8Array()): Buffer {
  return Buffer.concat([Uint8Array.of(0x80 | code, payload.length), payload]);
}

/** The frame that closes a connection. */
export function closeFrame(code: number): Buffer {
  return shortFrame(opcode.close, Uint8Array.of(code >> 8, code & 0xff));
}

/** A whole message as a client sends it. */
export function maskedFrame(code: number, payload: Uint8Array = new Uint8Array()): Buffer {
  const frame = Buffer.allocUnsafe(frameHeadBytesMax + maskBytes + payload.length);
  const length = writeFrameHead(frame, code, payload.length);
  frame[1] = (frame[1] as number) | 0x80;
  const mask = crypto.getRandomValues(frame.subarray(length, length + maskBytes));
  const body = frame.subarray(length + maskBytes, length + maskBytes + payload.length);
  body.set(payload);
  applyMask(body, mask, 0);
  return frame.subarray(0, length + maskBytes + payload.length);
}

function applyMask(bytes: Uint8Array, mask: Uint8Array, begun: number): void {
  for (let i = 0; i < bytes.length; i++) bytes[i] = (bytes[i] as number) ^ (mask[(begun + i) & 3] as number);
}

/** Hears what frames say. */
type FrameListener = {
  /** A part of a message; `isText`: the message is text. `bytes` is a part of the input, already unmasked. */
  data(bytes: Buffer, isText: boolean): void;
  /** A message is complete; `length`: its size in bytes. */
  messageEnd(isText: boolean, length: number): void;
  control(code: number, payload: Buffer): void;
};

type Frame = { code: number; isFinal: boolean; remaining: number; mask: Buffer; masked: number };

/**
 * Reads frames however they are cut, and keeps nothing of their content: messages may be of any length. Input that RFC
 * 6455 (5.1, 5.2, 5.5) forbids ends it. Clients mask what they send, and servers do not.
 */
export class FrameReader {
  readonly #listener: FrameListener;
  readonly #maskBytes: number;
  #head = Buffer.alloc(0);
  #frame: Frame | undefined;
  #control = Buffer.alloc(0);
  /** The message under way: frames that continue it do not repeat its kind. */
  #message: { isText: boolean; length: number } | undefined;

  constructor(listener: FrameListener, from: 'client' | 'server' = 'client') {
    this.#listener = listener;
    this.#maskBytes = from === 'client' ? maskBytes : 0;
  }

  /** Takes all of `input` from `at` on. False: it is not WebSocket; don't pass any more. */
  take(input: Buffer, at: number): boolean {
    let position = at;
    while (position < input.length) {
      if (this.#frame === undefined) {
        const length = this.#takeHead(input, position);
        if (length === undefined) return false;
        position += length;
      } else {
        position += this.#takePayload(this.#frame, input, position);
      }
      if (this.#frame?.remaining === 0) this.#endFrame(this.#frame);
    }
    return true;
  }

  /** Takes bytes of a head, and answers how many; undefined for a head that the peer must not send. */
  #takeHead(input: Buffer, at: number): number | undefined {
    const before = this.#head.length;
    const end = Math.min(input.length, at + frameHeadBytesMax + this.#maskBytes - before);
    const head = before === 0 ? input.subarray(at, end) : Buffer.concat([this.#head, input.subarray(at, end)]);
    // Checked before the mask has arrived: otherwise the reader would wait for mask bytes that never come.
    if (head.length > 1 && ((head[1] as number) & 0x80) !== (this.#maskBytes > 0 ? 0x80 : 0)) return undefined;
    const length = headLength(head, this.#maskBytes);
    if (length === undefined || head.length < length) {
      this.#head = Buffer.from(head);
      return end - at;
    }
    this.#head = Buffer.alloc(0);
    return this.#begin(head, length) ? length - before : undefined;
  }

  #begin(head: Buffer, length: number): boolean {
    const [first = 0, second = 0] = head;
    const code = first & 0x0f;
    const isFinal = (first & 0x80) !== 0;
    const isControl = code >= opcode.close;
    const remaining = payloadLength(head, second & 0x7f);
    const isKnown = (Object.values(opcode) as number[]).includes(code);
    if ((first & 0x70) !== 0 || !isKnown || remaining === undefined) return false;
    if (isControl && (!isFinal || remaining > controlBytesMax)) return false;
    if (!isControl && (code === opcode.continuation) !== (this.#message !== undefined)) return false;
    if (!isControl) this.#message ??= { isText: code === opcode.text, length: 0 };
    this.#frame = {
      code,
      isFinal,
      remaining,
      mask: Buffer.from(head.subarray(length - this.#maskBytes, length)),
      masked: 0,
    };
    return true;
  }

  #takePayload(frame: Frame, input: Buffer, at: number): number {
    const bytes = input.subarray(at, at + Math.min(frame.remaining, input.length - at));
    if (this.#maskBytes > 0) applyMask(bytes, frame.mask, frame.masked);
    frame.masked = (frame.masked + bytes.length) & 3;
    frame.remaining -= bytes.length;
    if (frame.code >= opcode.close) this.#control = Buffer.concat([this.#control, bytes]);
    else if (this.#message) {
      this.#message.length += bytes.length;
      this.#listener.data(bytes, this.#message.isText);
    }
    return bytes.length;
  }

  #endFrame({ code, isFinal }: Frame): void {
    this.#frame = undefined;
    if (code >= opcode.close) {
      const payload = this.#control;
      this.#control = Buffer.alloc(0);
      this.#listener.control(code, payload);
    } else if (isFinal && this.#message) {
      const { isText, length } = this.#message;
      this.#message = undefined;
      this.#listener.messageEnd(isText, length);
    }
  }
}

/** Length of a head; undefined while it is not known. */
function headLength(head: Buffer, maskLength: number): number | undefined {
  const second = head[1];
  if (second === undefined) return undefined;
  const short = second & 0x7f;
  return 2 + (short === 127 ? 8 : short === 126 ? 2 : 0) + maskLength;
}

/** Undefined for a length beyond what a number can hold. */
function payloadLength(head: Buffer, short: number): number | undefined {
  if (short < 126) return short;
  if (short === 126) return head.readUInt16BE(2);
  const length = head.readBigUInt64BE(2);
  return length <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(length) : undefined;
}
