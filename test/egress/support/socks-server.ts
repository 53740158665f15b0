import { SocketChannel, channelHandlers, splice } from '../../../src/node/network/egress/proxy/channel.ts';
import { readBytes } from '../../../src/node/network/egress/proxy/bytes.ts';
import { addresses } from './addresses.ts';
import { lookUp, makeZones } from './names.ts';

/** A SOCKS5 server of the lab that reports its requests. With `login`, it requires a user and password. */
export function startSocksServer(
  port: number,
  login: { username: string; password: string } | undefined,
  onConnect: (target: string) => void,
): void {
  const zones = makeZones();

  const serve = async (client: SocketChannel) => {
    const reader = readBytes(client, 10_000);
    const number = async () => (await reader.read(1))[0] ?? 0;
    const text = async () => (await reader.read(await number())).toString('latin1');
    await reader.read(1);
    const methods = await reader.read(await number());
    const wanted = login ? 2 : 0;
    client.write(Buffer.of(5, methods.includes(wanted) ? wanted : 0xff));
    if (login) {
      await reader.read(1);
      const [username, password] = [await text(), await text()];
      client.write(Buffer.of(1, username === login.username && password === login.password ? 0 : 1));
    }
    const [, , , type] = await reader.read(4);
    const host = type === 3 ? await text() : (await reader.read(4)).join('.');
    const target = (await reader.read(2)).readUInt16BE();
    onConnect(`${host}:${target}`);
    const [address = '0.0.0.1'] = type === 3 ? (lookUp(zones, host)?.addresses ?? []) : [host];
    const server = await Bun.connect<SocketChannel>({
      hostname: address,
      port: target,
      allowHalfOpen: true,
      socket: { ...channelHandlers, open: socket => void (socket.data = new SocketChannel(socket)) },
    } as Bun.TCPSocketConnectOptions<SocketChannel>).catch(() => undefined);
    client.write(Buffer.of(5, server ? 0 : 5, 0, 1, 0, 0, 0, 0, 0, 0));
    reader.release();
    if (server) splice(client, server.data);
    else client.end();
  };

  Bun.listen<SocketChannel>({
    hostname: addresses.socks,
    port,
    allowHalfOpen: true,
    socket: {
      ...channelHandlers,
      open(socket) {
        socket.data = new SocketChannel(socket);
        serve(socket.data).catch(() => socket.terminate());
      },
    },
  });
}
