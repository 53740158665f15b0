import { cString, libc } from '../../node/native/libc.ts';

const AF_UNIX = 1;
const SOCK_DGRAM_CLOEXEC = 2 | 0o2000000;
const MSG_NOSIGNAL = 0x4000;
/** Bytes of `sun_path` (unix(7)), with the final NUL. */
const pathBytesMax = 108;
const microsecondsPerMs = 1000;

/** Talks to the service manager that started this process, if there is one. */
export type ServiceManager = {
  /** Sends assignments such as `READY=1`. It is no failure if the manager does not listen. */
  notify(...assignments: string[]): void;
  /** How often it wants a sign of life, milliseconds; undefined: it does not. */
  watchdogMs: number | undefined;
};

/** Variables by which a service manager tells how to talk to it; only its direct child may use them. */
export const managerVariables = ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID'] as const;

/** The service manager that an environment names: the protocol of sd_notify(3) and sd_watchdog_enabled(3). */
export function serviceManager(environment: Record<string, string | undefined>): ServiceManager {
  const path = environment['NOTIFY_SOCKET'] ?? '';
  const isFor = Number(environment['WATCHDOG_PID'] ?? process.pid) === process.pid;
  const watchdogUs = Number(environment['WATCHDOG_USEC'] ?? 0);
  return {
    notify: (...assignments) => void (path !== '' && send(path, assignments.join('\n'))),
    watchdogMs: isFor && watchdogUs > 0 ? watchdogUs / microsecondsPerMs : undefined,
  };
}

/** Sends one datagram. The runtime has no sockets of this kind. */
function send(path: string, message: string): void {
  const name = cString(path.startsWith('@') ? `\0${path.slice(1)}` : path);
  if (name.length > pathBytesMax) return;
  const socket = libc.socket(AF_UNIX, SOCK_DGRAM_CLOEXEC, 0);
  if (socket < 0) return;
  try {
    // An abstract name has no NUL behind it: its length tells where it ends.
    const nameBytes = path.startsWith('@') ? name.length - 1 : name.length;
    const address = Buffer.alloc(2 + name.length);
    address.writeUInt16LE(AF_UNIX);
    name.copy(address, 2);
    if (libc.connect(socket, address, 2 + nameBytes) < 0) return;
    const bytes = Buffer.from(message);
    libc.send(socket, bytes, BigInt(bytes.length), MSG_NOSIGNAL);
  } finally {
    libc.close(socket);
  }
}
