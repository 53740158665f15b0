import { dlopen, ptr, read } from 'bun:ffi';

// Passing open files over unix sockets. Sources: unix(7), sendmsg(2), recvmsg(2), cmsg(3).

const { socket, socketpair, connect, sendmsg, recvmsg, getsockopt, close, __errno_location } = dlopen('libc.so.6', {
  socket: { args: ['int', 'int', 'int'], returns: 'int' },
  socketpair: { args: ['int', 'int', 'int', 'ptr'], returns: 'int' },
  connect: { args: ['int', 'ptr', 'u32'], returns: 'int' },
  sendmsg: { args: ['int', 'ptr', 'int'], returns: 'i64' },
  recvmsg: { args: ['int', 'ptr', 'int'], returns: 'i64' },
  getsockopt: { args: ['int', 'int', 'int', 'ptr', 'ptr'], returns: 'int' },
  close: { args: ['int'], returns: 'int' },
  __errno_location: { args: [], returns: 'ptr' },
}).symbols;

const AF_UNIX = 1;
const SOL_SOCKET = 1;
const SO_PEERCRED = 17;
const SCM_RIGHTS = 1;
const SOCK_STREAM = 1;
const SOCK_SEQPACKET = 5;
const NONBLOCK_CLOEXEC = 0o4000 | 0o2000000;
const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;
const MSG_CMSG_CLOEXEC = 0x4000_0000;
const EAGAIN = 11;
const EINTR = 4;
/** `struct sockaddr_un`. */
const addressBytes = 110;
/** `struct cmsghdr` with one descriptor, padded to a whole word. */
const controlBytes = 24;
const controlLength = 20;

function errno(): number {
  const location = __errno_location();
  return location === null ? 0 : read.i32(location, 0);
}

/** User and process at the other end of a unix socket, as the kernel recorded them at the connection. */
export function peerOf(fd: number): { pid: number; uid: number } {
  const credentials = Buffer.alloc(12);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(credentials.length);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, credentials, length) < 0)
    throw new Error(`SO_PEERCRED failed: errno ${errno()}`);
  return { pid: credentials.readInt32LE(0), uid: credentials.readUInt32LE(4) };
}

/** Two ends of a socket that passes open files, one per message. */
export const filePair = (): [number, number] => pairOf(SOCK_SEQPACKET);

/** Two ends of a stream socket. The caller owns both descriptors. */
export const streamPair = (): [number, number] => pairOf(SOCK_STREAM);

function pairOf(type: number): [number, number] {
  const ends = Buffer.alloc(8);
  if (socketpair(AF_UNIX, type | NONBLOCK_CLOEXEC, 0, ends) < 0) throw new Error(`socketpair failed: errno ${errno()}`);
  return [ends.readInt32LE(0), ends.readInt32LE(4)];
}

/** A socket connected to the one that listens at `path`; undefined where none listens, or its queue is full. */
export function connectTo(path: string): number | undefined {
  const address = Buffer.alloc(addressBytes);
  address.writeUInt16LE(AF_UNIX, 0);
  if (address.write(path, 2) !== Buffer.byteLength(path)) throw new Error(`the path of a socket is too long: ${path}`);
  const fd = socket(AF_UNIX, SOCK_STREAM | NONBLOCK_CLOEXEC, 0);
  if (fd < 0) throw new Error(`socket failed: errno ${errno()}`);
  if (connect(fd, address, addressBytes) === 0) return fd;
  close(fd);
  return undefined;
}

/** Sends an open file with a number that identifies it. The sender keeps its own descriptor. */
export function sendFile(fd: number, file: number, id: number): 'sent' | 'full' | 'failed' {
  const control = Buffer.from(Int32Array.of(controlLength, 0, SOL_SOCKET, SCM_RIGHTS, file, 0).buffer);
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(id);
  const message = new Message(bytes, control);
  if (sendmsg(fd, message.pointer, MSG_DONTWAIT | MSG_NOSIGNAL) === 4n) return 'sent';
  return [EAGAIN, EINTR].includes(errno()) ? 'full' : 'failed';
}

/** Takes an open file that is ready at a socket; does not wait for one. */
export function receiveFile(fd: number): { file: number; id: number } | 'none' | 'failed' {
  const control = Buffer.alloc(controlBytes);
  const bytes = Buffer.alloc(4);
  const message = new Message(bytes, control);
  const received = recvmsg(fd, message.pointer, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (received < 0n) return [EAGAIN, EINTR].includes(errno()) ? 'none' : 'failed';
  const passed = message.controlLength() === controlBytes && control.readInt32LE(12) === SCM_RIGHTS;
  // If there is none, the sender broke the rules, or this process has as many files open as it may.
  return passed && received === 4n ? { file: control.readInt32LE(16), id: bytes.readUInt32LE() } : 'failed';
}

/** Closes a descriptor that no object of the runtime owns. */
export function closeFile(fd: number): void {
  close(fd);
}

/** A `struct msghdr` with one part and its control data; the buffers live as long as this object. */
class Message {
  readonly #header: BigUint64Array;
  readonly #held: object[];

  constructor(bytes: Buffer, control: Buffer) {
    const part = BigUint64Array.of(addressOf(bytes), BigInt(bytes.length));
    this.#header = BigUint64Array.of(0n, 0n, addressOf(part), 1n, addressOf(control), BigInt(control.length), 0n);
    this.#held = [bytes, control, part];
  }

  get pointer(): ReturnType<typeof ptr> {
    return ptr(this.#header);
  }

  controlLength(): number {
    return this.#held.length && Number(this.#header[5]);
  }
}

const addressOf = (bytes: NodeJS.TypedArray): bigint => BigInt(ptr(bytes));
