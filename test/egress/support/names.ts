import { platformInsideAddress, proxyListenAddress, slotOf } from '../../../src/node/layout.ts';
import { addresses, hostPublic, hostUplink, hostileServer, silentServer } from './addresses.ts';

/** A name's addresses in the lab's internet; a function answers anew each time. */
export type Record = string[] | (() => string[]) | { alias: string };

/** The names of an installation's own addresses in the lab. */
export function ownNames(installation: number): { [name: string]: string[] } {
  const slots = [0, 1, 2].map(number => slotOf(installation, number));
  return {
    'neighbour.wild.test': slots.map(slot => slot.address),
    'source.wild.test': slots.map(slot => slot.proxyAddress),
    'proxy.wild.test': [proxyListenAddress(installation)],
    'platform.wild.test': [platformInsideAddress(installation)],
  };
}

/** The zones of the lab's internet. `*.` stands for any label without an entry of its own. */
export function makeZones(): Map<string, Record> {
  let asked = 0;
  return new Map<string, Record>([
    ['allowed.test', [addresses.allowed]],
    ['www.allowed.test', [addresses.allowed]],
    ['other.test', [addresses.other]],
    ['attacker.test', [addresses.attacker]],
    // Its server has no certificate for it.
    ['impostor.test', [addresses.attacker]],
    ['*.attacker.test', [addresses.attacker]],
    ['socks.test', [addresses.socks]],
    ['internal-socks.test', ['10.0.0.5']],
    ['*.wild.test', [addresses.wild]],
    // Answers of an attacker who owns an allowed name.
    ['private.wild.test', ['10.0.0.5']],
    ['loopback.wild.test', ['127.0.0.1']],
    ['any.wild.test', ['0.0.0.0']],
    ['metadata.wild.test', ['169.254.169.254']],
    ['host.wild.test', [hostUplink]],
    ['host-public.wild.test', [hostPublic]],
    ['gateway.wild.test', ['169.254.0.22']],
    ['broadcast.wild.test', ['255.255.255.255']],
    ['multicast.wild.test', ['224.0.0.1']],
    ['mixed.wild.test', ['10.0.0.5', addresses.wild]],
    ['rebinding.wild.test', () => (asked++ % 2 === 0 ? [addresses.wild] : ['10.0.0.5'])],
    ['hostile.wild.test', [hostileServer]],
    ['silent.wild.test', [silentServer]],
    ['public-then-private.wild.test', [addresses.wild, '10.0.0.5', '169.254.169.254']],
    ['azure.wild.test', ['168.63.129.16']],
    ['ecs.wild.test', ['169.254.170.2']],
    ['alibaba.wild.test', ['100.100.100.200']],
    ['oracle.wild.test', ['192.0.0.192']],
    ['carrier.wild.test', ['100.64.0.5']],
    ['home.wild.test', ['192.168.1.5']],
    ['link.wild.test', ['169.254.0.21']],
    ['reserved.wild.test', ['240.0.0.1']],
    ['chain.wild.test', { alias: 'alias.wild.test' }],
    ['alias.wild.test', { alias: 'private.wild.test' }],
    ['outside.wild.test', { alias: 'other.test' }],
  ]);
}

/** The addresses of a name and the alias on the way there, if any; undefined if the name does not exist. */
export function lookUp(zones: Map<string, Record>, name: string): { alias?: string; addresses: string[] } | undefined {
  const record = zones.get(name) ?? zones.get(`*.${name.split('.').slice(1).join('.')}`);
  if (record === undefined) return undefined;
  if (typeof record === 'function') return { addresses: record() };
  if (Array.isArray(record)) return { addresses: record };
  return { alias: record.alias, addresses: lookUp(zones, record.alias)?.addresses ?? [] };
}
