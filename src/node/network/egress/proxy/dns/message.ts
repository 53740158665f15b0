// DNS messages (RFC 1035 4), as far as a forwarder and an address resolver need them.

/** Record types that the code treats by name (RFC 1035, 3.2.2; RFC 9460). */
export const recordType = { A: 1, CNAME: 5, SVCB: 64, HTTPS: 65, ANY: 255, OPT: 41 } as const;
/** A server's response codes (RFC 1035, 4.1.1). */
export const responseCode = { ok: 0, failure: 2, noSuchName: 3, refused: 5 } as const;

const flag = { response: 0x8000, truncated: 0x0200, recursionDesired: 0x0100, recursionAvailable: 0x0080 } as const;
const headerBytes = 12;
const internetClass = 1;
const nameBytesMax = 255;
/** Most jumps in one compressed name: each label could have one; real names have two or three. */
const jumpsMax = 32;
/** Longest answer by UDP that a client accepts without saying otherwise (RFC 1035 4.2.1). */
export const plainUdpBytesMax = 512;
/** The length that the resolver announces: no more than one packet carries on any path (RFC 9715). */
export const udpBytesMax = 1232;

/** A question, with the fields that identify its answer. */
export type Query = {
  id: number;
  /** In lower case, without the final dot. Octets that host names do not have are kept as Latin-1. */
  name: string;
  type: number;
  /** Longest answer that the client accepts by UDP. */
  udpBytesMax: number;
  /** The client knows of extensions (EDNS, RFC 6891), and wants signatures. */
  extended: boolean;
  wantsSignatures: boolean;
};

/** Reads a query with one question of the Internet class; undefined for everything else. */
export function parseQuery(bytes: Buffer): Query | undefined {
  if (bytes.length < headerBytes) return undefined;
  const flags = bytes.readUInt16BE(2);
  const opcode = (flags >> 11) & 15;
  if (flags & flag.response || opcode !== 0 || bytes.readUInt16BE(4) !== 1) return undefined;
  const question = readName(bytes, headerBytes);
  if (!question || question.end + 4 > bytes.length || bytes.readUInt16BE(question.end + 2) !== internetClass)
    return undefined;
  const options = readOptions(bytes, question.end + 4);
  return { id: bytes.readUInt16BE(0), name: question.name, type: bytes.readUInt16BE(question.end), ...options };
}

function readOptions(bytes: Buffer, start: number): Pick<Query, 'udpBytesMax' | 'extended' | 'wantsSignatures'> {
  const records = bytes.readUInt16BE(6) + bytes.readUInt16BE(8) + bytes.readUInt16BE(10);
  for (const record of recordsIn(bytes, start, records)) {
    if (record.type !== recordType.OPT) continue;
    return {
      udpBytesMax: Math.max(plainUdpBytesMax, record.class),
      extended: true,
      wantsSignatures: (record.ttl & 0x8000) !== 0,
    };
  }
  return { udpBytesMax: plainUdpBytesMax, extended: false, wantsSignatures: false };
}

/** Writes the query anew: only the question, and nothing else in which a client could hide something. */
export function writeQuery(query: Pick<Query, 'id' | 'name' | 'type' | 'extended' | 'wantsSignatures'>): Buffer {
  const header = Buffer.alloc(headerBytes);
  header.writeUInt16BE(query.id, 0);
  header.writeUInt16BE(flag.recursionDesired, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(query.extended ? 1 : 0, 10);
  const options = Buffer.from([
    0,
    0,
    recordType.OPT,
    udpBytesMax >> 8,
    udpBytesMax & 255,
    0,
    0,
    query.wantsSignatures ? 0x80 : 0,
    0,
    0,
    0,
  ]);
  return Buffer.concat([header, questionOf(query), ...(query.extended ? [options] : [])]);
}

/** An answer without records. */
export function emptyAnswer(query: Query, code: number): Buffer {
  const header = Buffer.alloc(headerBytes);
  header.writeUInt16BE(query.id, 0);
  header.writeUInt16BE(flag.response | flag.recursionDesired | flag.recursionAvailable | code, 2);
  header.writeUInt16BE(1, 4);
  return Buffer.concat([header, questionOf(query)]);
}

/** An answer with IPv4 addresses. */
export function addressAnswer(query: Query, addresses: string[], ttlSeconds: number): Buffer {
  const answer = emptyAnswer(query, responseCode.ok);
  answer.writeUInt16BE(addresses.length, 6);
  const records = addresses.map(address => {
    const record = Buffer.alloc(16);
    record.writeUInt16BE(0xc000 | headerBytes, 0); // the question's name
    record.writeUInt16BE(recordType.A, 2);
    record.writeUInt16BE(internetClass, 4);
    record.writeUInt32BE(ttlSeconds, 6);
    record.writeUInt16BE(4, 10);
    record.set(address.split('.').map(Number), 12);
    return record;
  });
  return Buffer.concat([answer, ...records]);
}

/** A server's answer under the client's ID; cut to its head if it is too long, so that the client asks again by TCP. */
export function answerFor(query: Query, answer: Buffer, bytesMax: number): Buffer {
  const relayed = answer.length <= bytesMax ? Buffer.from(answer) : emptyAnswer(query, responseCode.ok);
  relayed.writeUInt16BE(query.id, 0);
  if (answer.length > bytesMax) relayed.writeUInt16BE(relayed.readUInt16BE(2) | flag.truncated, 2);
  return relayed;
}

/** A server's answer. */
type Answer = {
  code: number;
  truncated: boolean;
  /** IPv4 addresses of the name in the question, with aliases followed. */
  addresses: string[];
  /** How long the addresses may be kept, in s. */
  ttlSeconds: number;
};

/** Whether the message is an answer to the question. */
export function answers(message: Buffer, query: Pick<Query, 'id' | 'name' | 'type'>): boolean {
  if (
    message.length < headerBytes ||
    message.readUInt16BE(0) !== query.id ||
    !(message.readUInt16BE(2) & flag.response)
  )
    return false;
  if (message.readUInt16BE(4) !== 1) return false;
  const question = readName(message, headerBytes);
  return (
    question !== undefined &&
    question.end + 4 <= message.length &&
    question.name === query.name &&
    message.readUInt16BE(question.end) === query.type
  );
}

/**
 * Reads the addresses of an answer, following aliases from the name in the question. Ignores records of other names.
 */
export function readAnswer(message: Buffer): Answer {
  const flags = message.readUInt16BE(2);
  const question = readName(message, headerBytes);
  const answer: Answer = {
    code: flags & 15,
    truncated: (flags & flag.truncated) !== 0,
    addresses: [],
    ttlSeconds: Number.POSITIVE_INFINITY,
  };
  let name = question?.name;
  for (const record of recordsIn(message, (question?.end ?? 0) + 4, message.readUInt16BE(6))) {
    if (record.name !== name || record.class !== internetClass) continue;
    if (record.type === recordType.CNAME) name = readName(message, record.start)?.name;
    else if (record.type === recordType.A && record.length === 4)
      answer.addresses.push(message.subarray(record.start, record.start + 4).join('.'));
    else continue;
    answer.ttlSeconds = Math.min(answer.ttlSeconds, record.ttl);
  }
  return answer;
}

type Record = { name: string; type: number; class: number; ttl: number; start: number; length: number };

function* recordsIn(bytes: Buffer, start: number, count: number): Generator<Record> {
  for (let at = start, left = count; left > 0; left--) {
    const name = readName(bytes, at);
    if (!name || name.end + 10 > bytes.length) return;
    const length = bytes.readUInt16BE(name.end + 8);
    at = name.end + 10 + length;
    if (at > bytes.length) return;
    yield {
      name: name.name,
      type: bytes.readUInt16BE(name.end),
      class: bytes.readUInt16BE(name.end + 2),
      ttl: bytes.readUInt32BE(name.end + 4),
      start: name.end + 10,
      length,
    };
  }
}

/** Reads a name and follows its compression: each jump goes backwards, so that there is an end. */
function readName(bytes: Buffer, start: number): { name: string; end: number } | undefined {
  const labels: string[] = [];
  let [at, end, limit, total, jumps] = [start, -1, start, 0, 0];
  for (;;) {
    const length = bytes[at];
    if (length === undefined) return undefined;
    if (length >= 0xc0) {
      const target = ((length & 0x3f) << 8) | (bytes[at + 1] ?? 0xffff);
      if (end < 0) end = at + 2;
      if (target >= limit || ++jumps > jumpsMax) return undefined;
      limit = at = target;
      continue;
    }
    if (length > 63) return undefined;
    if (length === 0) return { name: labels.join('.').toLowerCase(), end: end < 0 ? at + 1 : end };
    total += length + 1;
    if (total > nameBytesMax || at + 1 + length > bytes.length) return undefined;
    const label = bytes.toString('latin1', at + 1, at + 1 + length);
    // A dot inside a label would make it look like two labels.
    if (label.includes('.')) return undefined;
    labels.push(label);
    at += 1 + length;
  }
}

function questionOf({ name, type }: Pick<Query, 'name' | 'type'>): Buffer {
  const labels = name === '' ? [] : name.split('.');
  const encoded = labels.map(label => Buffer.concat([Buffer.of(label.length), Buffer.from(label, 'latin1')]));
  return Buffer.concat([...encoded, Buffer.of(0, type >> 8, type & 255, 0, internetClass)]);
}
