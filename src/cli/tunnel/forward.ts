import { createServer, type Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { AtollError, messageOf } from '../../base/error.ts';
import { commandLineDetail, parseArguments } from '../terminal/arguments.ts';
import type { Command, Terminal } from '../terminal/command.ts';
import type { Connect } from '../connection/connection.ts';
import type { PlatformRequest } from '../connection/platform-request.ts';
import { openTunnel, type TunnelEnd } from './open.ts';

/** Where connections are accepted, and where they lead. */
type Forwarding = { host: string; localPort: number; port: number };

/** `atoll forward`: makes ports of a sandbox available on this machine, whatever they speak. */
export function forwardCommand(name: string, request: PlatformRequest, connect: Connect): Command {
  return {
    name,
    usage: '[--address ADDRESS] SANDBOX_ID [LOCAL_PORT:]PORT...',
    summary: 'Lets programs of this machine connect to TCP ports of a sandbox, until it is interrupted',
    async run(args, terminal) {
      const { values, positionals } = parseArguments(args, { address: { type: 'string' } }, [
        'SANDBOX_ID',
        '<PORT...>',
      ]);
      const [sandboxId = '', ...ports] = positionals;
      const end = await tunnelEndOf(request, connect, sandboxId);
      const forwardings = ports.map(text => forwardingOf(text, values.address ?? '127.0.0.1'));
      using listeners = new DisposableStack();
      for (const forwarding of forwardings) listeners.use(await listen(forwarding, end, terminal));
      await interrupted();
      return 0;
    },
  };
}

/**
 * What a tunnel into a sandbox needs besides the port. Fails with `not_found`, and with `conflict` if the sandbox does
 * not run.
 */
export async function tunnelEndOf(
  request: PlatformRequest,
  connect: Connect,
  sandboxId: string,
): Promise<Omit<TunnelEnd, 'port'>> {
  const sandbox = (await request('GET', `/sandboxes/${encodeURIComponent(sandboxId)}`)) as {
    envdAccessToken?: string;
    state: string;
  };
  if (sandbox.state !== 'running')
    throw new AtollError('conflict', `${sandboxId} is ${sandbox.state}: \`atoll sandbox resume ${sandboxId}\` first.`);
  return { url: connect().url, sandboxId, accessToken: sandbox.envdAccessToken };
}

function forwardingOf(text: string, host: string): Forwarding {
  if (/\/udp$/i.test(text))
    throw new AtollError('invalid', `${text}: UDP does not pass into a sandbox, since the edge has TCP ports alone`, {
      detail: commandLineDetail,
    });
  const match = /^(?:(\d{1,5}):)?(\d{1,5})$/.exec(text);
  const port = Number(match?.[2]);
  const localPort = match?.[1] === undefined ? port : Number(match[1]);
  if (!match || port < 1 || port > 65_535 || localPort > 65_535)
    throw new AtollError('invalid', `${text} must be PORT or LOCAL_PORT:PORT, from 1 to 65535`, {
      detail: commandLineDetail,
    });
  return { host, localPort, port };
}

/**
 * Accepts connections until disposed of. Disposal cuts open connections, which would otherwise keep the program
 * running.
 */
async function listen(
  { host, localPort, port }: Forwarding,
  end: Omit<TunnelEnd, 'port'>,
  terminal: Terminal,
): Promise<Disposable> {
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, socket => {
    open.add(socket);
    carry(socket, { ...end, port })
      .catch((error: unknown) => server.listening && terminal.err(`Port ${port}: ${messageOf(error)}\n`))
      .finally(() => open.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', error =>
      reject(new AtollError('unavailable', `Port ${localPort} of this machine can't be used: ${messageOf(error)}`)),
    );
    server.listen(localPort, host, resolve);
  });
  const address = server.address();
  const taken = typeof address === 'object' && address ? address.port : localPort;
  terminal.err(`${host}:${taken} leads to port ${port} of ${end.sandboxId}.\n`);
  return {
    [Symbol.dispose]() {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}

async function carry(socket: Socket, end: TunnelEnd): Promise<void> {
  socket.on('error', () => {});
  try {
    const tunnel = await openTunnel(end);
    // A pipeline doesn't notice a stream that was over before the pipeline began.
    if (socket.destroyed) return void tunnel.destroy();
    await Promise.all([pipeline(socket, tunnel), pipeline(tunnel, socket)]);
  } finally {
    socket.destroy();
  }
}

function interrupted(): Promise<void> {
  return new Promise(resolve => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve());
  });
}
