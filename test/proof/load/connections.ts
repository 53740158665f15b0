import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';

/** Connections per address: the edge allows 4,096, and fewer if the host gives it few open files. */
const perAddress = 1_000;
const openedAtOnce = 100;

/** Kept connections that are reused. */
export type Connections = Disposable & {
  readonly count: number;
  /** Sends a request on one of them, chosen by number, and resolves with the status of its answer. */
  ask(index: number): Promise<string>;
};

/**
 * How many can be kept: an edge allows half as many connections as its open files (getrlimit(2)), and closes idle ones
 * sooner beyond half of that.
 */
export function keptMax(): number {
  const [, openFiles] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  return Math.floor(Number(openFiles) / 4);
}

/** Opens connections to an edge from several loopback addresses; each of them sends `request` once. */
export async function openConnections(port: number, count: number, request: string): Promise<Connections> {
  const sockets: Socket[] = [];
  const ask = async (socket: Socket) => {
    if (socket.destroyed) throw new Error('the edge had closed a connection that was kept');
    const answered = new AbortController();
    const signal = AbortSignal.any([answered.signal, AbortSignal.timeout(60_000)]);
    const first = (event: 'data' | 'close') => once(socket, event, { signal }).then(([bytes]) => ({ event, bytes }));
    const outcomes = [first('data'), first('close')];
    socket.write(request);
    const { event, bytes } = await Promise.race(outcomes);
    // Otherwise a listener for the other event would remain with each request.
    answered.abort();
    await Promise.allSettled(outcomes);
    if (event === 'close') throw new Error('the edge closed a connection');
    return (bytes as Buffer).toString('latin1').slice(9, 12);
  };
  const open = async (index: number) => {
    const socket = connect({ host: '127.0.0.1', port, localAddress: `127.0.1.${1 + Math.floor(index / perAddress)}` });
    sockets.push(socket);
    await once(socket, 'connect');
    const status = await ask(socket);
    if (status !== '204') throw new Error(`connection ${index} was answered with ${status}`);
  };
  for (let index = 0; index < count; index += openedAtOnce)
    await Promise.all(
      Array.from({ length: Math.min(openedAtOnce, count - index) }, (_, offset) => open(index + offset)),
    );
  return {
    count,
    ask: index => ask(sockets[index % count]!),
    [Symbol.dispose]: () => sockets.forEach(socket => socket.destroy()),
  };
}
