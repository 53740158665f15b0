import { AtollError } from '../../../base/error.ts';

/**
 * One field of a protocol buffer message, undecoded: copying it does not need its meaning. Source: protobuf.dev,
 * "Encoding".
 */
export type Field = { number: number; wire: 0; value: bigint } | { number: number; wire: 1 | 2 | 5; value: Uint8Array };

/** Splits a message into its fields, in order. */
export function decodeFields(bytes: Uint8Array): Field[] {
  const fields: Field[] = [];
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined || shift > 63n) throw malformed();
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  const take = (length: number): Uint8Array => {
    if (at + length > bytes.length) throw malformed();
    at += length;
    return bytes.subarray(at - length, at);
  };
  while (at < bytes.length) {
    const key = varint();
    const number = Number(key >> 3n);
    const wire = Number(key & 7n);
    if (wire === 0) fields.push({ number, wire, value: varint() });
    else if (wire === 1) fields.push({ number, wire, value: take(8) });
    else if (wire === 2) fields.push({ number, wire, value: take(Number(varint())) });
    else if (wire === 5) fields.push({ number, wire, value: take(4) });
    else throw malformed();
  }
  return fields;
}

/** Joins fields into a message. */
export function encodeFields(fields: Field[]): Uint8Array {
  const parts: Uint8Array[] = [];
  for (const field of fields) {
    parts.push(varintOf((BigInt(field.number) << 3n) | BigInt(field.wire)));
    if (field.wire === 0) parts.push(varintOf(field.value));
    else {
      if (field.wire === 2) parts.push(varintOf(BigInt(field.value.length)));
      parts.push(field.value);
    }
  }
  return Buffer.concat(parts);
}

function varintOf(value: bigint): Uint8Array {
  const bytes: number[] = [];
  for (; value > 127n; value >>= 7n) bytes.push(Number(value & 127n) | 128);
  bytes.push(Number(value));
  return Uint8Array.from(bytes);
}

/** The number in field `number`, 0 if it is absent. */
export function numberIn(fields: Field[], number: number): number {
  const field = fields.findLast(field => field.number === number);
  return field?.wire === 0 ? Number(field.value) : 0;
}

/** All numbers of a repeated field. */
export function numbersIn(fields: Field[], number: number): number[] {
  return fields.flatMap(field => (field.number === number && field.wire === 0 ? [Number(field.value)] : []));
}

/** The text in field `number`, empty if it is absent. */
export function textIn(fields: Field[], number: number): string {
  const field = fields.findLast(field => field.number === number);
  return field?.wire === 2 ? Buffer.from(field.value).toString() : '';
}

/** The message in field `number`, decoded; undefined if it is absent. */
export function messageIn(fields: Field[], number: number): Field[] | undefined {
  const field = fields.find(field => field.number === number);
  return field?.wire === 2 ? decodeFields(field.value) : undefined;
}

/** The same fields, with number fields replaced or added. */
export function withNumbers(fields: Field[], numbers: Record<number, number>): Field[] {
  const kept = fields.filter(field => !(field.number in numbers));
  const added = Object.entries(numbers).map(([number, value]): Field => ({
    number: Number(number),
    wire: 0,
    value: BigInt(value),
  }));
  return [...kept, ...added];
}

/** The same fields, with every message in field `number` replaced by the result of `change`. */
export function withMessages(fields: Field[], number: number, change: (message: Field[]) => Field[]): Field[] {
  return fields.map(field =>
    field.number === number && field.wire === 2
      ? { ...field, value: encodeFields(change(decodeFields(field.value))) }
      : field,
  );
}

function malformed(): AtollError {
  return new AtollError('internal', 'a checkpoint image is malformed');
}
