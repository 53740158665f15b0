/**
 * The headers that our readers look at. A header's position here is its id, so that a parsed head can keep "where is
 * header x" in an array instead of a map.
 */
const names = [
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'upgrade',
  'expect',
  'keep-alive',
  'proxy-connection',
  'te',
  'http2-settings',
  'e2b-sandbox-id',
  'e2b-sandbox-port',
  'svc-sandbox-id',
  'svc-sandbox-port',
  'e2b-traffic-access-token',
  'svc-traffic-access-token',
  'x-access-token',
  'atoll-only-running',
  'sec-websocket-key',
  'sec-websocket-version',
  'sec-websocket-protocol',
  'user-agent',
  'accept',
  'sec-fetch-mode',
  'x-requested-with',
  'origin',
  'access-control-request-method',
  'access-control-request-headers',
  'x-forwarded-for',
  'x-forwarded-proto',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-server',
  'x-real-ip',
  'cookie',
  'forwarded',
  'set-cookie',
  'clear-site-data',
  'strict-transport-security',
  'alt-svc',
  'nel',
  'report-to',
  'reporting-endpoints',
  'accept-ch',
  'critical-ch',
  'service-worker-allowed',
] as const;

/** The name of a header that has an id of its own. */
export type KnownHeader = (typeof names)[number];

/** How many ids there are; the ids are the numbers below. */
export const knownHeaderCount = names.length;

/** The id of each known header. */
export const headerId = Object.fromEntries(names.map((name, id) => [name, id])) as Readonly<
  Record<KnownHeader, number>
>;

/** The id of a header that is not known. */
export const unknownHeader = 255;

/** The id of all headers of the platform's own family (`x-atoll-…`), which clients must not send. */
export const internalHeader = 254;

const internalPrefix = Buffer.from('x-atoll-');
const nameBytes: readonly Uint8Array[] = names.map(name => Buffer.from(name));
const slotBits = 9;
const { multiplier, slots } = collisionFreeSlots();

/** One step of the hash over a name's lower-case octets; starts from 0. */
export function hashStep(hash: number, lower: number): number {
  return (Math.imul(hash, 31) + lower) | 0;
}

/** The id of the header whose name is `bytes[start, end)` in any case and whose lower-case hash is `hash`. */
export function identifyHeader(bytes: Uint8Array, start: number, end: number, hash: number): number {
  const id = slots[slotOf(hash)] ?? unknownHeader;
  const known = nameBytes[id];
  if (known !== undefined && known.length === end - start && equalsIgnoringCase(bytes, start, known)) return id;
  return end - start > internalPrefix.length && equalsIgnoringCase(bytes, start, internalPrefix)
    ? internalHeader
    : unknownHeader;
}

function equalsIgnoringCase(bytes: Uint8Array, start: number, lower: Uint8Array): boolean {
  for (let i = 0; i < lower.length; i++) {
    // Known names hold only letters, digits and '-', and each of these already has the bit 0x20 set.
    if (((bytes[start + i] as number) | 0x20) !== lower[i]) return false;
  }
  return true;
}

function slotOf(hash: number): number {
  return slotFor(hash, multiplier);
}

function slotFor(hash: number, factor: number): number {
  return Math.imul(hash, factor) >>> (32 - slotBits);
}

/** The first multiplier that gives every known name a slot of its own, so that a look-up compares one name at most. */
function collisionFreeSlots(): { multiplier: number; slots: Uint8Array } {
  const hashes = nameBytes.map(name => name.reduce(hashStep, 0));
  for (let factor = 0x9e3779b1; ; factor += 2) {
    const table = new Uint8Array(1 << slotBits).fill(unknownHeader);
    hashes.forEach((hash, id) => {
      table[slotFor(hash, factor)] = id;
    });
    if (hashes.every((hash, id) => table[slotFor(hash, factor)] === id)) return { multiplier: factor, slots: table };
  }
}
