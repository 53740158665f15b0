import type { Channel } from '../wire/channel.ts';
import { SocketChannel } from '../wire/socket-channel.ts';

/** Longest message from a part, bytes: the supervisor is root and buffers messages of parts without rights. */
export const partMessageBytesMax = 1 << 20;

/** The descriptor on which a part talks to its supervisor. */
export const partDescriptor = 3;

/**
 * A channel over the connected stream socket `fd`, which it closes at its own end. `messageBytesMax`: limit for
 * received messages.
 */
export async function channelOver(fd: number, messageBytesMax?: number): Promise<Channel> {
  const { promise, resolve, reject } = Promise.withResolvers<Channel>();
  // The runtime accepts a descriptor where its types know only addresses.
  const options = {
    fd,
    socket: {
      open(socket: Bun.Socket<SocketChannel>) {
        socket.data = new SocketChannel(socket, null, messageBytesMax);
        resolve(socket.data);
      },
      data: (socket: Bun.Socket<SocketChannel>, bytes: Uint8Array) => socket.data.received(bytes),
      drain: (socket: Bun.Socket<SocketChannel>) => socket.data.drained(),
      close: (socket: Bun.Socket<SocketChannel>) => socket.data.closed(),
      error: (socket: Bun.Socket<SocketChannel>) => void socket.terminate(),
    },
  };
  Bun.connect(options as unknown as Bun.UnixSocketOptions<SocketChannel>).catch(reject);
  return await promise;
}
