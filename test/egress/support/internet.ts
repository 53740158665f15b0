import { addresses, victimAddresses } from './addresses.ts';
import type { Visit } from './lab.ts';
import { serveRemote } from './rpc.ts';

// The servers of a lab's internet.

await serveRemote(async () => {
  const visits: Visit[] = [];
  const note = (service: string, from: string, detail = '') => void visits.push({ service, from, detail });
  for (const [name, address] of [...Object.entries(addresses), ...victimAddresses.map(address => ['victim', address] as const)]) {
    Bun.serve({
      hostname: address,
      port: 80,
      fetch(request, server) {
        note(`http ${name}`, server.requestIP(request)?.address ?? '', request.headers.get('host') ?? '');
        return new Response(`page of ${name}\n`);
      },
    });
    // Says a line, then repeats what it is told.
    Bun.listen({
      hostname: address,
      port: 7000,
      socket: {
        open(socket) {
          note(`echo ${name}`, socket.remoteAddress);
          socket.write(`hello from ${name}\n`);
        },
        data: (socket, bytes) => void socket.write(bytes),
      },
    });
    await Bun.udpSocket({
      hostname: address,
      port: 7000,
      socket: {
        data(socket, bytes, port, from) {
          note(`datagram ${name}`, from);
          socket.send(bytes, port, from);
        },
      },
    });
  }
  return { operations: { visits: () => visits.splice(0) }, stop: async () => {} };
});
