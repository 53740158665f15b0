/** The distinguished encoding of ASN.1 (ITU-T X.690) as far as certificates need it. */

const tag = {
  boolean: 0x01,
  integer: 0x02,
  bits: 0x03,
  octets: 0x04,
  objectId: 0x06,
  utf8: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
};

/** SEQUENCE of encoded values. */
export const sequence = (...parts: Buffer[]): Buffer => encode(tag.sequence, Buffer.concat(parts));
/** SET of encoded values. The caller sorts them, as DER demands of more than one. */
export const set = (...parts: Buffer[]): Buffer => encode(tag.set, Buffer.concat(parts));
/** BOOLEAN. */
export const boolean = (value: boolean): Buffer => encode(tag.boolean, Buffer.from([value ? 0xff : 0]));
/** OCTET STRING. */
export const octets = (value: Buffer): Buffer => encode(tag.octets, value);
/** UTF8String. */
export const utf8 = (text: string): Buffer => encode(tag.utf8, Buffer.from(text));

/** A number below 128, or the big-endian bytes of a positive one whose first bit is clear. */
export function integer(value: number | Buffer): Buffer {
  return encode(tag.integer, typeof value === 'number' ? Buffer.from([value]) : value);
}

/** Bits; the last `unused` bits of the last byte don't count. */
export function bits(value: Buffer, unused: number): Buffer {
  return encode(tag.bits, Buffer.concat([Buffer.from([unused]), value]));
}

/** A value with a context-specific tag; `constructed` ones hold other values. */
export function contextual(number: number, constructed: boolean, value: Buffer): Buffer {
  return encode(0x80 | (constructed ? 0x20 : 0) | number, value);
}

/** OBJECT IDENTIFIER from its dotted form, e.g. `2.5.29.14`. */
export function objectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  return encode(tag.objectId, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

/** UTCTime up to 2049, GeneralizedTime from 2050 on (RFC 5280 4.1.2.5). */
export function time(date: Date): Buffer {
  const digits = `${date.toISOString().replace(/\.\d+|[-:T]/g, '')}`;
  return date.getUTCFullYear() < 2050
    ? encode(tag.utcTime, Buffer.from(digits.slice(2)))
    : encode(tag.generalizedTime, Buffer.from(digits));
}

/** The content of one encoded value. */
export function contents(value: Buffer): Buffer {
  const { start, end } = boundsAt(value, 0);
  return value.subarray(start, end);
}

/** The encoded values that follow each other in `bytes`. */
export function split(bytes: Buffer): Buffer[] {
  const values: Buffer[] = [];
  for (let at = 0; at < bytes.length;) {
    const { end } = boundsAt(bytes, at);
    values.push(bytes.subarray(at, end));
    at = end;
  }
  return values;
}

function encode(type: number, value: Buffer): Buffer {
  const { length } = value;
  const lengthBytes = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([type, ...lengthBytes]), value]);
}

function boundsAt(bytes: Buffer, at: number): { start: number; end: number } {
  const first = bytes[at + 1] ?? 0;
  const extra = first < 128 ? 0 : first & 0x7f;
  const start = at + 2 + extra;
  const length = extra === 0 ? first : bytes.readUIntBE(at + 2, extra);
  return { start, end: start + length };
}

function base128(value: number): number[] {
  const groups = [value & 0x7f];
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) groups.unshift((rest & 0x7f) | 0x80);
  return groups;
}
