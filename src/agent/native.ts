import { dlopen, ptr } from 'bun:ffi';

const closeOnExec = 0o2000000;
const setWindowSize = 0x5414;
const setNonBlocking = 0x5421; // FIONBIO
const lockTerminal = 0x40045431; // TIOCSPTLCK
const terminalNumber = 0x80045430; // TIOCGPTN
const dontWait = 0x40; // MSG_DONTWAIT
const noSignal = 0x4000; // MSG_NOSIGNAL
const socketLevel = 1; // SOL_SOCKET
const passDescriptors = 1; // SCM_RIGHTS
const controlHeadBytes = 16; // of struct cmsghdr
const monotonicClock = 1; // CLOCK_MONOTONIC
/** Buffer for reads: XATTR_LIST_MAX and XATTR_SIZE_MAX of Linux, and the capacity of a pipe. */
const scratchBytes = 64 << 10;

/**
 * The C library calls that Bun has no function for. The library is opened at the first use: a sandbox that is never
 * asked for anything pays nothing. None of the calls waits.
 */
export type Native = {
  /** A pipe as [read end, write end], both closed on exec. Throws if no descriptor is left. */
  pipe(): [number, number];
  /**
   * Sends bytes, and up to three descriptors with the first of them, over a unix stream socket (sendmsg(2), unix(7)).
   * Answers how many bytes it took: 0 if none fits now or the other end is closed.
   */
  send(socket: number, bytes: Uint8Array, descriptors: number[]): number;
  /** Tells the terminal behind `master` its size; its foreground processes get SIGWINCH. */
  setTerminalSize(master: number, columns: number, rows: number): boolean;
  /** Unlocks the terminal behind `master` and answers its path; undefined if there is none. */
  terminalOf(master: number): string | undefined;
  /** From here on, no read or write on the open file waits, through any of its descriptors. */
  neverWait(fd: number): void;
  /** Undoes `neverWait`. */
  mayWait(fd: number): void;
  /**
   * The bytes readable now from an open file that never waits, up to 64 KiB; empty at its end. Undefined: none now, or
   * it can't be read.
   */
  readNow(fd: number): Uint8Array | undefined;
  /**
   * Extended attributes of an open file, or of a path without following a final link. Empty if there are none or can be
   * none.
   */
  attributes(file: string | Uint8Array | number): Map<string, string>;
  /** False: the file system does not keep this attribute, or has no room for it. */
  setAttribute(fd: number, name: string, value: string): boolean;
  removeAttribute(fd: number, name: string): void;
  /** A new inotify instance (inotify(7)), or -1 if the sandbox has too many. */
  inotify(): number;
  /** Watches `path` for the events in `mask`. Answers the watch descriptor, or -1. */
  addWatch(inotify: number, path: Uint8Array, mask: number): number;
  removeWatch(inotify: number, watch: number): void;
  /** Milliseconds of a clock that nobody can set and that continues from one process to the next (CLOCK_MONOTONIC). */
  clockMs(): number;
};

/**
 * The system calls that the runtime lacks. Loads libc at the first use, so that an agent without such work stays small.
 */
export function openNative(): Native {
  let library: ReturnType<typeof open> | undefined;
  const symbols = () => (library ??= open()).symbols;
  const pair = new Int32Array(2);
  let buffer: Buffer | undefined;
  let message: ReturnType<typeof createMessage> | undefined;

  return {
    pipe() {
      if (symbols().pipe2(pair, closeOnExec) !== 0) throw new Error('no pipe: too many open files');
      return [pair[0] ?? -1, pair[1] ?? -1];
    },
    send(socket, bytes, descriptors) {
      message ??= createMessage();
      return Math.max(Number(symbols().sendmsg(socket, message(bytes, descriptors), dontWait | noSignal)), 0);
    },
    setTerminalSize(master, columns, rows) {
      return symbols().ioctl(master, setWindowSize, new Uint16Array([rows, columns, 0, 0])) === 0;
    },
    terminalOf(master) {
      const number = new Uint32Array(1);
      if (
        symbols().ioctl(master, lockTerminal, new Int32Array(1)) !== 0 ||
        symbols().ioctl(master, terminalNumber, number) !== 0
      )
        return undefined;
      return `/dev/pts/${number[0]}`;
    },
    neverWait: fd => void symbols().ioctl(fd, setNonBlocking, new Int32Array([1])),
    mayWait: fd => void symbols().ioctl(fd, setNonBlocking, new Int32Array([0])),
    readNow(fd) {
      const into = (buffer ??= Buffer.allocUnsafeSlow(scratchBytes));
      const length = Number(symbols().read(fd, into, scratchBytes));
      return length < 0 ? undefined : new Uint8Array(into.subarray(0, length));
    },
    attributes(file) {
      const { llistxattr, flistxattr, lgetxattr, fgetxattr } = symbols();
      const into = (buffer ??= Buffer.allocUnsafeSlow(scratchBytes));
      const path = typeof file === 'number' ? undefined : text(file);
      const listed = Number(path ? llistxattr(path, into, scratchBytes) : flistxattr(Number(file), into, scratchBytes));
      const found = new Map<string, string>();
      if (listed <= 0) return found;
      for (const name of into.toString('utf8', 0, listed - 1).split('\0')) {
        const size = Number(
          path
            ? lgetxattr(path, text(name), into, scratchBytes)
            : fgetxattr(Number(file), text(name), into, scratchBytes),
        );
        if (size >= 0) found.set(name, into.toString('utf8', 0, size));
      }
      return found;
    },
    setAttribute(fd, name, value) {
      const bytes = Buffer.from(`${value}\0`);
      return symbols().fsetxattr(fd, text(name), bytes, bytes.length - 1, 0) === 0;
    },
    removeAttribute(fd, name) {
      symbols().fremovexattr(fd, text(name));
    },
    inotify: () => symbols().inotify_init1(closeOnExec),
    addWatch: (inotify, path, mask) => symbols().inotify_add_watch(inotify, text(path), mask),
    removeWatch: (inotify, watch) => void symbols().inotify_rm_watch(inotify, watch),
    clockMs() {
      const time = new BigInt64Array(2); // struct timespec
      symbols().clock_gettime(monotonicClock, time);
      return Number(time[0]) * 1000 + Number(time[1]) / 1e6;
    },
  };
}

/** Answers a function that describes a message for sendmsg(2): one at a time, in reused memory. */
function createMessage(): (bytes: Uint8Array, descriptors: number[]) => BigUint64Array {
  // struct iovec; struct cmsghdr with its descriptors; struct msghdr, on 64-bit machines.
  const [vector, control, head] = [new BigUint64Array(2), new BigUint64Array(4), new BigUint64Array(7)];
  const ints = new Int32Array(control.buffer);
  head[2] = BigInt(ptr(vector));
  head[3] = 1n;
  head[4] = BigInt(ptr(control));
  return (bytes, descriptors) => {
    vector[0] = BigInt(ptr(bytes));
    vector[1] = BigInt(bytes.length);
    const length = descriptors.length > 0 ? controlHeadBytes + descriptors.length * 4 : 0;
    control[0] = BigInt(length);
    ints.set([socketLevel, passDescriptors, ...descriptors], 2);
    head[5] = BigInt(length);
    return head;
  };
}

function text(value: string | Uint8Array): Buffer {
  return typeof value === 'string' ? Buffer.from(`${value}\0`) : Buffer.concat([value, new Uint8Array(1)]);
}

const open = () =>
  dlopen('libc.so.6', {
    pipe2: { args: ['ptr', 'i32'], returns: 'i32' },
    sendmsg: { args: ['i32', 'ptr', 'i32'], returns: 'i64' },
    ioctl: { args: ['i32', 'u64', 'ptr'], returns: 'i32' },
    read: { args: ['i32', 'ptr', 'u64'], returns: 'i64' },
    llistxattr: { args: ['ptr', 'ptr', 'u64'], returns: 'i64' },
    flistxattr: { args: ['i32', 'ptr', 'u64'], returns: 'i64' },
    lgetxattr: { args: ['ptr', 'ptr', 'ptr', 'u64'], returns: 'i64' },
    fgetxattr: { args: ['i32', 'ptr', 'ptr', 'u64'], returns: 'i64' },
    fsetxattr: { args: ['i32', 'ptr', 'ptr', 'u64', 'i32'], returns: 'i32' },
    fremovexattr: { args: ['i32', 'ptr'], returns: 'i32' },
    inotify_init1: { args: ['i32'], returns: 'i32' },
    inotify_add_watch: { args: ['i32', 'ptr', 'u32'], returns: 'i32' },
    inotify_rm_watch: { args: ['i32', 'i32'], returns: 'i32' },
    clock_gettime: { args: ['i32', 'ptr'], returns: 'i32' },
  });
