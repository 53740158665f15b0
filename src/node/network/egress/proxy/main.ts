import { messageOf } from '../../../../base/error.ts';
import { parseAddress } from '../../../../protocol/network/network.ts';
import { nameServerOf, type FromProxy, type ProxySettings, type ToProxy } from '../proxies/messages.ts';
import { SocketChannel, channelHandlers } from './channel.ts';
import { createDescriptors, descriptorsForSandboxes } from './shares/descriptors.ts';
import { startForwarder } from './dns/forwarder.ts';
import { createResolver } from './dns/resolver.ts';
import { createProxiedSandboxes, type ProxiedSandboxes } from './sandboxes.ts';
import { createHostCertificates } from './tls/host-certificates.ts';
import { originalDestination } from './original-destination.ts';
import { dropPrivileges } from '../../../../base/process/privileges.ts';
import { serve, type ServeContext } from './serve.ts';
import { createTurns } from './shares/turns.ts';

// The egress proxy. It is a process of its own because it reads what strangers write, and because a sandbox that
// downloads must not slow the platform down. It ends with the platform.

process.on('disconnect', () => process.exit(0));
// Terminals and service managers send these signals to everybody; the node decides when its proxies end.
for (const signal of ['SIGINT', 'SIGHUP', 'SIGTERM'] as const) process.on(signal, () => {});
// This process reads strangers' bytes: an error of its code costs one connection, not all of them.
process.on('uncaughtException', error => send({ kind: 'fault', message: error.stack ?? messageOf(error) }));
process.on('unhandledRejection', reason =>
  send({ kind: 'fault', message: reason instanceof Error ? (reason.stack ?? reason.message) : String(reason) }),
);
takeMessages();

function takeMessages(): void {
  let sandboxes: ProxiedSandboxes | undefined;
  process.on('message', async (message: ToProxy) => {
    if (message.kind === 'start') {
      try {
        sandboxes = await start(message.settings);
        send({ kind: 'ready' });
      } catch (error) {
        send({ kind: 'failed', message: messageOf(error) });
      }
      return;
    }
    if (message.kind === 'set') sandboxes?.set(message.slot, message.policy);
    else if (message.kind === 'remove') sandboxes?.remove(message.slot);
    send({ kind: 'done', id: message.id });
  });
}

function send(message: FromProxy): void {
  process.send?.(message);
}

async function start(settings: ProxySettings): Promise<ProxiedSandboxes> {
  const sandboxes = createProxiedSandboxes(settings.installation, createTurns(), send);
  const descriptors = createDescriptors(descriptorsForSandboxes());
  const resolver = createResolver(settings.nameServers.map(nameServerOf));
  const { authority, roots, opensAllowedNames, platform, port, resolverPort } = settings;
  const certificateFor = createHostCertificates(authority);
  const context = { resolver, descriptors, certificateFor, roots, opensAllowedNames, platform };
  await atPort(port, () => listen(settings, sandboxes, context));
  await atPort(resolverPort, () =>
    startForwarder({
      hostname: settings.listenAddress,
      port: resolverPort,
      sandboxes,
      resolver,
      descriptors,
      platform,
      resolvers: settings.resolvers.map(text => parseAddress(text)).filter(octets => octets !== undefined),
    }),
  );
  dropPrivileges(settings.userId);
  return sandboxes;
}

/** Adds the port to the runtime's errors, which do not name it: each proxy has two. */
async function atPort(port: number, listens: () => void | Promise<void>): Promise<void> {
  try {
    await listens();
  } catch (error) {
    throw new Error(`port ${port}: ${messageOf(error)}`);
  }
}

function listen({ listenAddress, port }: ProxySettings, sandboxes: ProxiedSandboxes, context: ServeContext): void {
  Bun.listen<SocketChannel>({
    hostname: listenAddress,
    port,
    allowHalfOpen: true,
    socket: {
      ...channelHandlers,
      open(socket) {
        const sandbox = sandboxes.at(socket.remoteAddress);
        const channel = (socket.data = new SocketChannel(socket, sandbox?.share));
        const destination = originalDestination(fdOf(socket));
        // No other program can connect here, but a sandbox whose policy was removed at this moment can.
        if (!sandbox || !destination) return void socket.terminate();
        socket.setNoDelay(true);
        socket.setKeepAlive(true, keepAliveDelayMs);
        serve(context, sandbox, channel, destination).catch(error => {
          channel.abort();
          send({ kind: 'fault', message: messageOf(error) });
        });
      },
    },
  });
}

/** When nothing has passed for this long, the kernel checks whether the peer is still there. */
const keepAliveDelayMs = 60_000;

/** The runtime has this property, but its types do not. */
function fdOf(socket: Bun.Socket<SocketChannel>): number {
  return (socket as unknown as { fd: number }).fd;
}
