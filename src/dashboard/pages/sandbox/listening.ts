/** A TCP port that something in a sandbox listens on; `isLocal`: reachable only from inside. */
type ListeningPort = { port: number; isLocal: boolean };

/** State of a listening socket, as the kernel writes it: include/net/tcp_states.h. */
const listenState = '0A';
/** 127.x.x.x and ::1, with words in the machine's byte order as in proc_pid_net(5). */
const isLoopback = (address: string) =>
  address.length === 8 ? address.endsWith('7F') : address === '00000000000000000000000001000000';

/** The ports in `/proc/PID/net/tcp` and `tcp6`, lowest first, each once. */
export function listeningPorts(tables: readonly string[]): ListeningPort[] {
  const ports = new Map<number, boolean>();
  for (const line of tables.join('\n').split('\n')) {
    const [, local = '', , state] = line.trim().split(/\s+/, 4);
    const [address = '', hex = ''] = local.split(':');
    if (state !== listenState || hex === '') continue;
    const port = Number.parseInt(hex, 16);
    ports.set(port, (ports.get(port) ?? true) && isLoopback(address));
  }
  return [...ports].map(([port, isLocal]) => ({ port, isLocal })).toSorted((one, other) => one.port - other.port);
}
