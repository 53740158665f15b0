import { parseAddress } from '../../../protocol/network.ts';
import { innerAddress } from '../../layout.ts';
import type { Protocol } from './policy.ts';
import { attribute, attributesIn, families, flags, NetlinkError, openNetlink, type Netlink } from './netlink.ts';

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

// linux/sock_diag.h, inet_diag.h
const SOCK_DESTROY = 21;
const anyCookie = 0xffffffff;

const ENOENT = 2;
const EOPNOTSUPP = 95;
const protocols: Record<number, Protocol> = { 6: 'tcp', 17: 'udp' };

/** A connection of a sandbox that the kernel keeps track of, as the sandbox sees it. */
export type Flow = {
  protocol: Protocol;
  destination: Uint8Array;
  sourcePort: number;
  port: number;
  /** The egress proxy took it. */
  redirected: boolean;
  /** The original direction, as the kernel wrote it. */
  tuple: Buffer;
};

/** The connections of a sandbox. `address` stands for it outside of it. */
export function flowsOf(netfilter: Netlink, address: string): Flow[] {
  const source = attribute(attributes.original, [attribute(tupleAddresses, [attribute(1, octetsOf(address))])]);
  const filter = attribute(attributes.filter, [attribute(filterOriginal, Buffer.of(filterBySource, 0, 0, 0))]);
  const body = Buffer.concat([header, source, filter]);
  const answers = netfilter.exchange('listing connections', [{ type: (subsystem << 8) | message.get, flags: flags.dump, body }]);
  return answers.flatMap(answer => flowOf(answer.body, octetsOf(address)) ?? []);
}

/** Makes the kernel forget a connection: answers to it are no longer let in. */
export function forgetFlow(netfilter: Netlink, flow: Flow): void {
  const body = Buffer.concat([header, flow.tuple]);
  unless([ENOENT], () => netfilter.exchange('ending a connection', [{ type: (subsystem << 8) | message.delete, flags: flags.ack, body }]));
}

/**
 * Closes the sandbox's sockets of TCP connections with an error at once, so that programs need not wait for a timeout.
 * `open` makes a netlink socket in the sandbox's namespace. Where the kernel can't (CONFIG_INET_DIAG_DESTROY), the next
 * packet is what ends the connection.
 */
export function destroySockets(flows: Flow[], open: (protocol: number) => number): void {
  const connections = flows.filter(flow => flow.protocol === 'tcp');
  if (connections.length === 0) return;
  const diag = openNetlink(families.sockDiag, open);
  try {
    for (const flow of connections) {
      unless([ENOENT, EOPNOTSUPP], () => diag.exchange('closing a socket', [{ type: SOCK_DESTROY, flags: flags.ack, body: socketOf(flow) }]));
    }
  } finally {
    diag.close();
  }
}

/** struct nfgenmsg. */
const header = Buffer.of(AF_INET, 0, 0, 0);

function flowOf(body: Buffer, source: Uint8Array): Flow | undefined {
  const found = attributesIn(body.subarray(4));
  const original = found.get(attributes.original);
  const tuple = original && attributesIn(original);
  const addresses = tuple && attributesIn(tuple.get(tupleAddresses) ?? Buffer.alloc(0));
  const ends = tuple && attributesIn(tuple.get(tupleProtocol) ?? Buffer.alloc(0));
  const destination = addresses?.get(2);
  // Kernels before 5.8 do not filter.
  if (!original || !ends || !destination || !addresses?.get(1)?.equals(source)) return undefined;
  return {
    protocol: protocols[ends.get(1)?.[0] ?? 0] ?? 'other',
    destination: Uint8Array.from(destination),
    sourcePort: ends.get(2)?.readUInt16BE() ?? 0,
    port: ends.get(3)?.readUInt16BE() ?? 0,
    redirected: ((found.get(attributes.status)?.readUInt32BE() ?? 0) & IPS_DST_NAT) !== 0,
    tuple: Buffer.from(attribute(attributes.original, [original])),
  };
}

/** struct inet_diag_req_v2. */
function socketOf(flow: Flow): Buffer {
  const body = Buffer.alloc(56);
  body.set([AF_INET, 6]);
  body.writeUInt32LE(0xffffffff, 4);
  body.writeUInt16BE(flow.sourcePort, 8);
  body.writeUInt16BE(flow.port, 10);
  body.set(octetsOf(innerAddress), 12);
  body.set(flow.destination, 28);
  body.writeUInt32LE(anyCookie, 48);
  body.writeUInt32LE(anyCookie, 52);
  return body;
}

function unless(tolerated: number[], work: () => void): void {
  try {
    work();
  } catch (error) {
    if (!(error instanceof NetlinkError && tolerated.includes(error.errno))) throw error;
  }
}

function octetsOf(address: string): Uint8Array {
  return parseAddress(address) ?? new Uint8Array(4);
}
