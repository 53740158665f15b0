import { chmodSync, chownSync, rmSync } from 'node:fs';
import type { Log } from '../base/telemetry/log.ts';
import type { Caller } from '../protocol/wire/method.ts';
import { closeFile, filePair, peerOf, sendFile } from './files.ts';
import { callBytesMax } from './frame.ts';
import { CallBudget, serve, type Served } from './serve.ts';
import { SocketChannel } from './socket-channel.ts';
import { WaitingBytes } from './stream-channel.ts';

/** A socket, and who may connect to it. */
type ListenOptions = {
  /** Path of the unix socket; a file there is replaced. */
  path: string;
  /** The process that the socket is for. */
  caller: Caller;
  /** The user that the caller runs as. The kernel says who connects; others are disconnected. */
  uid: number;
  log: Log;
};

/** Connections that a caller may have open: it needs one, and a second while the first is ending. */
export const connectionsMax = 8;

const ownerOnly = 0o600;
const ownerAndGroup = 0o660;

/** The part of the runtime's sockets that is missing from their types. */
type WithDescriptor = Bun.Socket<SocketChannel | undefined> & { readonly fd: number };

/** Serves methods to other processes of this machine, until it is stopped. */
export function listenOn({ path, caller, uid, log }: ListenOptions, served: Omit<Served, 'log'>): { stop(): void } {
  rmSync(path, { force: true });
  const channels = new Set<SocketChannel>();
  const underWay = new CallBudget();
  const waiting = new WaitingBytes();
  const listener = Bun.listen<SocketChannel | undefined>({
    unix: path,
    socket: {
      open(socket) {
        const { fd } = socket as WithDescriptor;
        const peer = peerOf(fd);
        if (peer.uid !== uid) {
          log.warn('a stranger connected to a socket of the platform', { path, ...peer });
          return void socket.terminate();
        }
        if (channels.size >= connectionsMax) {
          log.warn('a process of the platform opens too many connections', { path, connectionsMax });
          return void socket.terminate();
        }
        const [own, other] = filePair();
        // The caller receives it before anything else.
        const sent = sendFile(fd, other, 0);
        closeFile(other);
        const channel = new SocketChannel(socket, own, callBytesMax[caller], waiting);
        socket.data = channel;
        channels.add(channel);
        serve(channel, caller, { ...served, log }, underWay);
        if (sent !== 'sent') channel.close();
      },
      data: (socket, bytes) => socket.data?.received(bytes),
      drain: socket => socket.data?.drained(),
      close(socket) {
        if (!socket.data) return;
        channels.delete(socket.data);
        socket.data.closed();
        if (channels.size === 0) served.allGone?.();
      },
      error(socket, error) {
        log.error('a connection of the platform failed', { path, error: error.stack });
        socket.terminate();
      },
    },
  });
  const self = process.getuid?.();
  // Root gives the socket to the other user. A user other than root shares it with the group of its folder, which is
  // the other user's.
  chmodSync(path, self === uid || self === 0 ? ownerOnly : ownerAndGroup);
  if (self === 0 && uid !== 0) chownSync(path, uid, uid);
  return {
    stop() {
      listener.stop(true);
      for (const channel of [...channels]) channel.close();
    },
  };
}
