import { addressText, parseAddress } from '../../protocol/network/network.ts';
import { attribute, attributesIn, flags, giveWay, NetlinkError, type Netlink } from './netlink.ts';

// linux/netfilter/nfnetlink_conntrack.h
const subsystem = 1;
const message = { get: 1, delete: 2 } as const;
const attributes = { original: 1, status: 3, filter: 25 } as const;
const tupleAddresses = 1;
const tupleProtocol = 2;
const filterOriginal = 1;
const filterBySource = 1;
const IPS_DST_NAT = 1 << 5;
const AF_INET = 2;
const AF_INET6 = 10;
/** Attributes of an address' source by its octets. */
const sourceAttribute = { 4: 1, 16: 3 } as const;
const ENOENT = 2;
const protocolNumbers: Record<Protocol, number> = { tcp: 6, udp: 17, other: 0 };

/** The protocol of a packet; `other` stands for everything without ports. */
export type Protocol = 'tcp' | 'udp' | 'other';

/** A conversation of a sandbox, as the sandbox sees it. */
export type Flow = { protocol: Protocol; destination: Uint8Array; port: number; sourcePort: number };

/**
 * Whether the egress proxy carries a conversation. `address` stands for the sandbox outside of it. A lookup takes some
 * ten µs.
 */
export function isRedirected(netfilter: Netlink, address: string, flow: Flow): boolean {
  // The proxy takes only IPv4.
  if (flow.destination.length !== 4) return false;
  const body = Buffer.concat([headerOf(AF_INET), tupleOf(address, flow)]);
  const question = { type: (subsystem << 8) | message.get, flags: flags.ack, body };
  const [answer] = unless(ENOENT, () => netfilter.exchange('looking a connection up', [question])) ?? [];
  const status = answer && attributesIn(answer.body.subarray(4)).get(attributes.status);
  return ((status?.readUInt32BE() ?? 0) & IPS_DST_NAT) !== 0;
}

/** How many connections one message to the kernel ends, at some ten µs each. */
const forgottenAtOnce = 100;

/**
 * Makes the kernel forget every conversation of the addresses `gone`, of either family, which stood for sandboxes:
 * packets that still arrive for those must not reach their successors. The kernel walks its whole table once for each
 * family, 12 ms for an empty one. Nothing else may use `netfilter` meanwhile; however many conversations there are,
 * other work gets its turn in between.
 */
export async function forgetFlows(netfilter: Netlink, gone: ReadonlySet<string>): Promise<void> {
  for (const length of [4, 16] as const) {
    await forgetFamily(netfilter, length, new Set([...gone].filter(address => octetsOf(address).length === length)));
  }
}

async function forgetFamily(netfilter: Netlink, length: 4 | 16, gone: ReadonlySet<string>): Promise<void> {
  const [only] = gone;
  if (only === undefined) return;
  const header = headerOf(length === 4 ? AF_INET : AF_INET6);
  const sourceKey = sourceAttribute[length];
  const source = attribute(attributes.original, [attribute(tupleAddresses, [attribute(sourceKey, octetsOf(only))])]);
  const filter = attribute(attributes.filter, [attribute(filterOriginal, Buffer.of(filterBySource, 0, 0, 0))]);
  // The kernel filters by one address; the conversations of several are searched for among all. So are those of IPv6:
  // kernels (6.18 is one) leave out exactly the ones that a filter by an IPv6 address names.
  const body = gone.size === 1 && length === 4 ? Buffer.concat([header, source, filter]) : header;
  const tuples: Buffer[] = [];
  for await (const answers of netfilter.dump('listing connections', { type: (subsystem << 8) | message.get, body })) {
    for (const answer of answers) {
      const original = attributesIn(answer.body.subarray(4)).get(attributes.original);
      const addresses = original && attributesIn(attributesIn(original).get(tupleAddresses) ?? Buffer.alloc(0));
      // Kernels before 5.8 do not filter.
      const from = addresses?.get(sourceKey);
      if (original && from !== undefined && gone.has(addressText(from)))
        tuples.push(attribute(attributes.original, [Buffer.from(original)]));
    }
  }
  for (let at = 0; at < tuples.length; at += forgottenAtOnce) {
    const messages = tuples
      .slice(at, at + forgottenAtOnce)
      .map(tuple => ({
        type: (subsystem << 8) | message.delete,
        flags: flags.ack,
        body: Buffer.concat([header, tuple]),
      }));
    unless(ENOENT, () => netfilter.exchange('ending connections', messages));
    await giveWay();
  }
}

/** struct nfgenmsg. */
const headerOf = (family: number) => Buffer.of(family, 0, 0, 0);

function tupleOf(address: string, { protocol, destination, port, sourcePort }: Flow): Buffer {
  const ports = (number: number) => Buffer.of(number >> 8, number & 255);
  return attribute(attributes.original, [
    attribute(tupleAddresses, [attribute(1, octetsOf(address)), attribute(2, destination)]),
    attribute(tupleProtocol, [
      attribute(1, Buffer.of(protocolNumbers[protocol])),
      attribute(2, ports(sourcePort)),
      attribute(3, ports(port)),
    ]),
  ]);
}

function unless<T>(errno: number, work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (error instanceof NetlinkError && error.errno === errno) return undefined;
    throw error;
  }
}

function octetsOf(address: string): Uint8Array {
  return parseAddress(address) ?? new Uint8Array(4);
}
