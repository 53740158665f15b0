import { expect, test } from 'bun:test';
import { openNetworkNamespace } from './netns.ts';

/** How a connection from a socket in this process's own namespace turns out. */
async function reach(target: 'ipv4' | 'ipv6', port: number): Promise<string> {
  const namespace = openNetworkNamespace(process.pid);
  const connecting = namespace.connect(target, port);
  try {
    for (;;) {
      const progress = connecting.progress();
      if (progress !== 'pending') return progress;
      await Bun.sleep(1);
    }
  } finally {
    namespace.closeSocket(connecting.fd);
    namespace.close();
  }
}

test('a service on either loopback address is reached, and without one the connection is refused', async () => {
  for (const [target, hostname] of [
    ['ipv4', '127.0.0.1'],
    ['ipv6', '::1'],
  ] as const) {
    const server = Bun.listen({ hostname, port: 0, socket: { data() {} } });
    expect([target, await reach(target, server.port)]).toEqual([target, 'connected']);
    server.stop(true);
    expect([target, await reach(target, server.port)]).toEqual([target, 'refused']);
  }
});
