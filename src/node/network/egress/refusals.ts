import { errno, libc } from '../../native/libc.ts';
import { flowsPrefix } from '../rules/refusal-chains.ts';
import { attribute, attributesIn, be32, encode, families, messagesIn, NetlinkError } from '../../native/netlink.ts';
import type { Protocol } from '../../native/conntrack.ts';

const AF_NETLINK = 16;
const SOL_NETLINK = 270;
const NETLINK_NO_ENOBUFS = 5;
const SOCK_RAW_NONBLOCK_CLOEXEC = 3 | 0o4000 | 0o2000000;

// linux/netfilter/nfnetlink_log.h
const subsystem = 4;
const message = { packet: 0, configure: 1 } as const;
const setting = { command: 1, mode: 2, flushAfter: 4 } as const;
const commandBind = 1;
const copyPacket = 2;
const payload = 9;
const prefix = 10;
/** How long the kernel collects reports before it sends them, in units of 10 ms. */
const flushAfterCentiseconds = 10;
/** Enough of a packet for its IP header and ports. */
const copiedBytes = 64;

/** A packet that the rules refused. */
export type Refusal = {
  /** The address that stands for the sandbox, of either family. */
  source: Uint8Array;
  destination: Uint8Array;
  protocol: Protocol;
  /** 0 if the protocol has no ports. */
  port: number;
  /** The packet is fine, but the sandbox has as many connections as it may. */
  isOneTooMany: boolean;
};

/**
 * Calls `listener` for the packets that the host table reports to `group`. If there are many, the kernel reports a
 * sample. Answers the function that stops it.
 */
export async function watchRefusals(group: number, listener: (refusal: Refusal) => void): Promise<() => void> {
  const fd = libc.socket(AF_NETLINK, SOCK_RAW_NONBLOCK_CLOEXEC, families.netfilter);
  if (fd < 0) throw new NetlinkError('reports of refused packets', errno());
  const address = Buffer.alloc(12);
  address.writeUInt16LE(AF_NETLINK);
  // Drops reports that do not fit the socket's buffer; an error about them would close the socket.
  libc.setsockopt(fd, SOL_NETLINK, NETLINK_NO_ENOBUFS, Buffer.of(1, 0, 0, 0), 4);
  libc.bind(fd, address, address.length);
  for (const part of settings) {
    const header = Buffer.of(0, 0, group >> 8, group & 255);
    const bytes = encode(
      { type: (subsystem << 8) | message.configure, flags: 0, body: Buffer.concat([header, part]) },
      1,
    );
    libc.send(fd, bytes, bytes.length, 0);
  }
  const socket = await Bun.connect({
    fd,
    socket: {
      data(_: unknown, bytes: Buffer) {
        for (const { type, body } of messagesIn(bytes)) {
          const refusal =
            type === ((subsystem << 8) | message.packet) ? refusalOf(attributesIn(body.subarray(4))) : undefined;
          if (refusal) listener(refusal);
        }
      },
    },
  } as unknown as Parameters<typeof Bun.connect>[0]);
  socket.unref();
  return () => socket.terminate();
}

const settings = [
  attribute(setting.command, Buffer.of(commandBind)),
  attribute(setting.mode, Buffer.concat([be32(copiedBytes), Buffer.of(copyPacket, 0)])),
  attribute(setting.flushAfter, be32(flushAfterCentiseconds)),
];

function refusalOf(attributes: Map<number, Buffer>): Refusal | undefined {
  const packet = attributes.get(payload);
  const isV6 = packet !== undefined && packet[0]! >> 4 === 6;
  if (!packet || packet.length < (isV6 ? 40 : 20) || (!isV6 && packet[0]! >> 4 !== 4)) return undefined;
  // IPv6 packets with further headers are dropped before a rule could report them.
  const ports = isV6 ? 40 : (packet[0]! & 15) * 4;
  const number = isV6 ? packet[6] : packet[9];
  const [from, to, end] = isV6 ? [8, 24, 40] : [12, 16, 20];
  const protocol = number === 6 ? 'tcp' : number === 17 ? 'udp' : 'other';
  return {
    source: Uint8Array.from(packet.subarray(from, to)),
    destination: Uint8Array.from(packet.subarray(to, end)),
    protocol,
    port: protocol !== 'other' && packet.length >= ports + 4 ? packet.readUInt16BE(ports + 2) : 0,
    isOneTooMany: attributes.get(prefix)?.toString('latin1').startsWith(flowsPrefix) ?? false,
  };
}
