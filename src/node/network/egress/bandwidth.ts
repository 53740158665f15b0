import { readFileSync } from 'node:fs';
import type { Slot } from '../../layout.ts';
import type { NetworkNamespace } from '../../native/netns.ts';
import { cString } from '../../native/libc.ts';
import { attribute, families, flags, openNetlink, type Message } from '../../native/netlink.ts';

// linux/rtnetlink.h, pkt_sched.h
const RTM_NEWQDISC = 36;
const TC_H_ROOT = 0xffffffff;
const attributes = { kind: 1, options: 2 } as const;
const tbf = { parameters: 1, rate64: 4, burst: 6 } as const;
const linkLayerEthernet = 1;

/** At least one segment as the kernel hands it down, before it is cut into packets. */
const burstBytesMin = 128 << 10;
/** How long a packet may wait for its turn before later ones are dropped. */
const queueSeconds = 0.1;

/**
 * Limits what a sandbox sends and what it receives to `bytesPerSecond` each, by a token bucket at both ends of its
 * link. The sandbox can't change its end: it has no power over its network.
 */
export function limitBandwidth(slot: Slot, namespace: NetworkNamespace, bytesPerSecond: number): void {
  // Comes before anything is opened: a link that is gone has no number.
  const outer = linkNumber(slot, 'ifindex');
  const inner = linkNumber(slot, 'iflink');
  setBucket(openNetlink(families.route), outer, bytesPerSecond);
  setBucket(openNetlink(families.route, namespace.netlinkSocket), inner, bytesPerSecond);
}

function setBucket(route: ReturnType<typeof openNetlink>, index: number, bytesPerSecond: number): void {
  try {
    route.exchange('limiting the bandwidth of a sandbox', [bucketMessage(index, bytesPerSecond)]);
  } finally {
    route.close();
  }
}

function bucketMessage(index: number, bytesPerSecond: number): Message {
  const burst = Math.max(burstBytesMin, Math.ceil(bytesPerSecond / 100));
  const header = Buffer.alloc(20); // struct tcmsg
  header.writeInt32LE(index, 4);
  header.writeUInt32LE(TC_H_ROOT, 12);
  const parameters = Buffer.alloc(36); // struct tc_tbf_qopt
  parameters.writeUInt8(linkLayerEthernet, 1);
  parameters.writeUInt32LE(Math.min(bytesPerSecond, 0xffffffff), 8);
  parameters.writeUInt32LE(Math.min(burst + Math.ceil(bytesPerSecond * queueSeconds), 0xffffffff), 24);
  const rate = Buffer.alloc(8);
  rate.writeBigUInt64LE(BigInt(Math.floor(bytesPerSecond)));
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(burst);
  const options = [attribute(tbf.parameters, parameters), attribute(tbf.rate64, rate), attribute(tbf.burst, bytes)];
  const body = Buffer.concat([
    header,
    attribute(attributes.kind, cString('tbf')),
    attribute(attributes.options, options),
  ]);
  return { type: RTM_NEWQDISC, flags: flags.ack | flags.create | flags.replace, body };
}

/** Number of the host's end of the link, or of the sandbox's in its own namespace. */
function linkNumber(slot: Slot, file: 'ifindex' | 'iflink'): number {
  return Number(readFileSync(`/sys/class/net/${slot.interfaceName}/${file}`, 'utf8'));
}
