import { AtollError } from '../../base/error.ts';
import { errno, libc } from './libc.ts';

const AF_NETLINK = 16;
const SOCK_RAW_CLOEXEC = 3 | 0o2000000;
const NLM_F_REQUEST = 1;
const NLM_F_ACK = 4;
const NLMSG_ERROR = 2;
const NLMSG_DONE = 3;
const headerBytes = 16;
const nested = 0x8000;
/** Larger than what the kernel puts into one datagram of a dump. */
const receiveBytes = 64 << 10;
const MSG_DONTWAIT = 0x40;

/** Netlink protocols (linux/netlink.h). */
export const families = { route: 0, sockDiag: 4, netfilter: 12 } as const;
/** Flags of a request (linux/netlink.h). */
export const flags = { request: NLM_F_REQUEST, ack: NLM_F_ACK, replace: 0x100, create: 0x400, dump: 0x300 } as const;

/** A request, without the header that the socket puts before it. */
export type Message = { type: number; flags: number; body: Buffer };
/** One message of the kernel's. */
type Answer = { type: number; sequence: number; body: Buffer };

/** An error that the kernel answered. */
export class NetlinkError extends AtollError {
  readonly errno: number;
  constructor(what: string, errnoOfKernel: number) {
    super('internal', `${what}: the kernel answered errno ${errnoOfKernel}`);
    this.errno = errnoOfKernel;
  }
}

/** A netlink socket. */
export type Netlink = {
  /**
   * Sends messages in one datagram and collects the answers. The kernel does the work during the call: some ten µs for
   * a small one; the cost of a dump grows with its length.
   */
  exchange(what: string, messages: Message[]): Answer[];
  /**
   * Asks for a list that may be long. It comes in parts, each of them current when it is read, and other work gets its
   * turn in between. Nobody else may use the socket meanwhile.
   */
  dump(what: string, message: Pick<Message, 'type' | 'body'>): AsyncGenerator<Answer[], void>;
  close(): void;
};

/**
 * A netlink socket, by default in this process's own network namespace. Keep it: closing one of netfilter waits until
 * the kernel has destroyed what was deleted through any of them, some 10 ms.
 */
export function openNetlink(family: number, open = openSocket): Netlink {
  const fd = open(family);
  let sequence = 0;
  return {
    exchange(what, messages) {
      const first = sequence + 1;
      const bytes = Buffer.concat(messages.map(message => encode(message, ++sequence)));
      if (Number(libc.send(fd, bytes, bytes.length, 0)) !== bytes.length) throw new NetlinkError(what, errno());
      const waiting = messages.filter(message => message.flags & (NLM_F_ACK | flags.dump)).length;
      return receive(what, fd, first, waiting);
    },
    async *dump(what, message) {
      const bytes = encode({ ...message, flags: flags.dump }, ++sequence);
      if (Number(libc.send(fd, bytes, bytes.length, 0)) !== bytes.length) throw new NetlinkError(what, errno());
      const buffer = Buffer.alloc(receiveBytes);
      for (;;) {
        const length = Number(libc.recv(fd, buffer, buffer.length, MSG_DONTWAIT));
        if (length <= 0) throw new NetlinkError(what, errno());
        const answers = [...messagesIn(buffer.subarray(0, length))].filter(answer => answer.sequence === sequence);
        const end = answers.find(({ type }) => type === NLMSG_DONE || type === NLMSG_ERROR);
        const code = end?.type === NLMSG_ERROR ? -end.body.readInt32LE(0) : 0;
        if (code !== 0) throw new NetlinkError(what, code);
        const listed = answers
          .filter(answer => answer !== end)
          .map(answer => ({ ...answer, body: Buffer.from(answer.body) }));
        if (listed.length > 0) yield listed;
        if (end) return;
        await giveWay();
      }
    },
    close: () => void libc.close(fd),
  };
}

/** Lets other work of the event loop have its turn. */
export function giveWay(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve));
}

/** Makes a socket in the calling thread's network namespace. */
function openSocket(family: number): number {
  const fd = libc.socket(AF_NETLINK, SOCK_RAW_CLOEXEC, family);
  if (fd < 0) throw new NetlinkError('netlink socket', errno());
  return fd;
}

/**
 * Reads until every request was acknowledged or its dump has ended. The requested changes were made by the time `send`
 * returned.
 */
function receive(what: string, fd: number, first: number, requests: number): Answer[] {
  const answers: Answer[] = [];
  const buffer = Buffer.alloc(receiveBytes);
  let failure = 0;
  for (let left = requests; left > 0;) {
    const length = Number(libc.recv(fd, buffer, buffer.length, MSG_DONTWAIT));
    // The kernel stops acknowledging when it gives up a batch.
    if (length <= 0) throw new NetlinkError(what, failure || errno());
    for (const { type, sequence, body } of messagesIn(buffer.subarray(0, length))) {
      if (sequence < first) continue; // belongs to a batch that was given up
      if (type === NLMSG_ERROR) {
        left--;
        failure ||= -body.readInt32LE(0);
      } else if (type === NLMSG_DONE) {
        left--;
      } else {
        answers.push({ type, sequence, body: Buffer.from(body) });
      }
    }
  }
  if (failure !== 0) throw new NetlinkError(what, failure);
  return answers;
}

/** The messages of a datagram. */
export function* messagesIn(bytes: Buffer): Generator<Answer> {
  for (let at = 0; at + headerBytes <= bytes.length;) {
    const length = bytes.readUInt32LE(at);
    if (length < headerBytes || at + length > bytes.length) return;
    yield {
      type: bytes.readUInt16LE(at + 4),
      sequence: bytes.readUInt32LE(at + 8),
      body: bytes.subarray(at + headerBytes, at + length),
    };
    at += (length + 3) & ~3;
  }
}

/** A message with its header. */
export function encode(message: Message, sequence: number): Buffer {
  const header = Buffer.alloc(headerBytes);
  header.writeUInt32LE(headerBytes + message.body.length, 0);
  header.writeUInt16LE(message.type, 4);
  header.writeUInt16LE(message.flags | NLM_F_REQUEST, 6);
  header.writeUInt32LE(sequence, 8);
  return Buffer.concat([header, message.body]);
}

/** One attribute; a list of attributes makes it a nested one. */
export function attribute(type: number, value: Uint8Array | Uint8Array[]): Buffer {
  const content = Array.isArray(value) ? Buffer.concat(value) : value;
  const bytes = Buffer.alloc((4 + content.length + 3) & ~3);
  bytes.writeUInt16LE(4 + content.length, 0);
  bytes.writeUInt16LE(Array.isArray(value) ? type | nested : type, 2);
  bytes.set(content, 4);
  return bytes;
}

/** The attributes in `bytes` by type; if a type occurs twice, the last. */
export function attributesIn(bytes: Buffer): Map<number, Buffer> {
  const found = new Map<number, Buffer>();
  for (let at = 0; at + 4 <= bytes.length;) {
    const length = bytes.readUInt16LE(at);
    if (length < 4 || at + length > bytes.length) break;
    found.set(bytes.readUInt16LE(at + 2) & 0x3fff, bytes.subarray(at + 4, at + length));
    at += (length + 3) & ~3;
  }
  return found;
}

/** A number as the four octets of network order. */
export function be32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value | 0);
  return bytes;
}
