import { issueCertificate, type CertificatePair } from '../../../src/base/crypto/certificate.ts';
import { addresses, addressesV6, hostileServer, victimAddresses } from './addresses.ts';
import { startHostileServer } from './hostile-server.ts';
import type { Visit } from './lab.ts';
import { makeZones } from './names.ts';
import { startNameServer } from './name-server.ts';
import { serveRemote } from './rpc.ts';
import { startSocksServer } from './socks-server.ts';

// The servers of a lab's internet. The first argument is the authority that signs their certificates; the second says
// whether there is IPv6.

const authority = JSON.parse(process.argv[2] ?? '{}') as CertificatePair;
const hasIpv6 = JSON.parse(process.argv[3] ?? 'false') as boolean;

/** Names for which each address has a certificate. */
const certified: Record<string, string[]> = {
  allowed: ['allowed.test', 'www.allowed.test'],
  wild: ['*.wild.test'],
  other: ['other.test', 'outside.wild.test'],
  attacker: ['attacker.test', '*.attacker.test'],
};

await serveRemote(async () => {
  const visits: Visit[] = [];
  const note = (service: string, from: string, detail = '') => void visits.push({ service, from, detail });
  for (const [name, address] of [
    ...Object.entries(addresses),
    ...(hasIpv6 ? Object.entries(addressesV6).map(([name, address]) => [`${name} v6`, address] as const) : []),
    ...victimAddresses.map(address => ['victim', address] as const),
  ]) {
    startWeb(name, address, note);
    await startEcho(name, address, note);
  }
  startHostileServer(hostileServer);
  const zones = makeZones();
  for (const address of [addresses.publicResolver, addresses.attacker]) {
    await startNameServer(address, zones, (question, from) => note(`dns ${address}`, from, question));
  }
  startSocksServer(1080, undefined, target => note('socks', '', target));
  startSocksServer(1081, { username: 'user', password: 'secret' }, target => note('socks login', '', target));
  return {
    operations: {
      visits: () => visits.splice(0),
      define: (names: { [name: string]: string[] }) =>
        Object.entries(names).forEach(([name, list]) => zones.set(name, list)),
    },
    stop: async () => {},
  };
});

type Note = (service: string, from: string, detail?: string) => void;

/** Web servers on ports 80 and 443. */
function startWeb(name: string, address: string, note: Note): void {
  const serve = (service: string, port: number, tls?: Bun.TLSOptions) =>
    Bun.serve({
      hostname: address,
      port,
      ...(tls && { tls }),
      async fetch(request, server) {
        const { pathname } = new URL(request.url);
        note(
          `${service} ${name}`,
          server.requestIP(request)?.address ?? '',
          `${request.headers.get('host')} ${request.method} ${pathname}`,
        );
        if (pathname === '/websocket' && server.upgrade(request)) return undefined;
        if (pathname === '/headers') return Response.json(Object.fromEntries(request.headers));
        if (pathname === '/size') return new Response(`${(await request.arrayBuffer()).byteLength}\n`);
        if (pathname === '/part') return new Response(new Uint8Array(8_000_000));
        if (pathname === '/big') return new Response(new Uint8Array(64 << 20));
        return new Response(`page of ${name}\n`);
      },
      websocket: { message: (socket, message) => void socket.send(message) },
    });
  serve('http', 80);
  const { certificate, key } = issueCertificate(authority, certified[name] ?? [`${name}.test`], 30);
  serve('https', 443, { cert: certificate, key });
}

/** On port 7000: sends a line, then repeats what it receives. The same with datagrams, without the line. */
async function startEcho(name: string, address: string, note: Note): Promise<void> {
  Bun.listen({
    hostname: address,
    port: 7000,
    socket: {
      open(socket) {
        note(`echo ${name}`, socket.remoteAddress);
        socket.write(`hello from ${name}\n`);
      },
      data: (socket, bytes) => void socket.write(bytes),
      error() {},
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
      error() {}, // whoever asked is gone
    },
  });
}
