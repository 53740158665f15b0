// HTTP/2 by hand (RFC 9113, RFC 7541): frames that no library would send.

/** The preface of a client. */
export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

/** Types of frames. */
export const frameType = {
  data: 0,
  headers: 1,
  reset: 3,
  settings: 4,
  push: 5,
  ping: 6,
  goaway: 7,
  window: 8,
  more: 9,
};
/** Flags of frames: `acknowledged` for settings and pings, `endStream` for others. */
export const flag = { endStream: 1, acknowledged: 1, endHeaders: 4 };

/** A frame. */
export function frame(type: number, flags: number, stream: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Fields in HPACK, each a literal: names and values may contain any octet. */
export function headerBlock(fields: readonly (readonly [string, string])[]): Buffer {
  return Buffer.concat(
    fields.flatMap(([name, value]) => [Buffer.from([0]), ...[name, value].flatMap(text => literal(text))]),
  );
}

function literal(text: string): Buffer[] {
  const bytes = Buffer.from(text, 'latin1');
  return [integer(bytes.length), bytes];
}

/** An integer with a prefix of seven bits (RFC 7541 5.1). */
function integer(value: number): Buffer {
  if (value < 127) return Buffer.from([value]);
  const octets = [127];
  let rest = value - 127;
  for (; rest >= 128; rest >>= 7) octets.push((rest & 127) | 128);
  return Buffer.from([...octets, rest]);
}

/** The frame of a head, in one piece. */
export const headFrame = (stream: number, fields: readonly (readonly [string, string])[], flags = flag.endHeaders) =>
  frame(frameType.headers, flags, stream, headerBlock(fields));

/** A setting: its number and value. */
export function setting(number: number, value: number): Buffer {
  const bytes = Buffer.alloc(6);
  bytes.writeUInt16BE(number, 0);
  bytes.writeUInt32BE(value, 2);
  return bytes;
}

/** The whole frames in the received bytes; an incomplete one is left out. */
export function framesOf(bytes: Buffer): { type: number; flags: number; stream: number; payload: Buffer }[] {
  const frames = [];
  for (let at = 0; at + 9 <= bytes.length;) {
    const length = bytes.readUIntBE(at, 3);
    if (at + 9 + length > bytes.length) break;
    const payload = bytes.subarray(at + 9, at + 9 + length);
    frames.push({
      type: bytes.readUInt8(at + 3),
      flags: bytes.readUInt8(at + 4),
      stream: bytes.readUInt32BE(at + 5),
      payload,
    });
    at += 9 + length;
  }
  return frames;
}
