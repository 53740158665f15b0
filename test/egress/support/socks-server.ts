import { addresses } from './addresses.ts';
import { lookUp, makeZones } from './names.ts';

/** A SOCKS5 server of the lab that tells what it is asked for. With `login`, it asks for a user and password. */
export function startSocksServer(port: number, login: { username: string; password: string } | undefined, onConnect: (target: string) => void): void {
  const zones = makeZones();
  Bun.listen<{ bytes: Buffer; stage: 'greeting' | 'login' | 'request' | 'open'; server?: Bun.Socket<undefined> | undefined }>({
    hostname: addresses.socks,
    port,
    socket: {
      open: socket => void (socket.data = { bytes: Buffer.alloc(0), stage: 'greeting' }),
      async data(socket, part) {
        const state = socket.data;
        if (state.stage === 'open') return void state.server?.write(part);
        state.bytes = Buffer.concat([state.bytes, part]);
        const { bytes } = state;
        if (state.stage === 'greeting') {
          if (bytes.length < 2 || bytes.length < 2 + bytes[1]!) return;
          const wanted = login ? 2 : 0;
          const offered = bytes.subarray(2, 2 + bytes[1]!).includes(wanted);
          state.bytes = bytes.subarray(2 + bytes[1]!);
          state.stage = login ? 'login' : 'request';
          socket.write(Buffer.of(5, offered ? wanted : 0xff));
        } else if (state.stage === 'login') {
          const user = bytes.toString('latin1', 2, 2 + bytes[1]!);
          const password = bytes.toString('latin1', 3 + bytes[1]!, 3 + bytes[1]! + bytes[2 + bytes[1]!]!);
          state.bytes = bytes.subarray(3 + user.length + password.length);
          state.stage = 'request';
          socket.write(Buffer.of(1, user === login?.username && password === login.password ? 0 : 1));
        } else {
          const isName = bytes[3] === 3;
          const host = isName ? bytes.toString('latin1', 5, 5 + bytes[4]!) : bytes.subarray(4, 8).join('.');
          const target = bytes.readUInt16BE(isName ? 5 + bytes[4]! : 8);
          onConnect(`${host}:${target}`);
          const [address] = isName ? (lookUp(zones, host)?.addresses ?? []) : [host];
          state.stage = 'open';
          state.server = await Bun.connect({
            hostname: address ?? '0.0.0.1',
            port: target,
            socket: { data: (_, answer) => void socket.write(answer), close: () => void socket.end(), error() {} },
          }).catch(() => undefined);
          socket.write(Buffer.of(5, state.server ? 0 : 5, 0, 1, 0, 0, 0, 0, 0, 0));
        }
      },
      close: socket => void socket.data.server?.end(),
      error() {},
    },
  });
}
