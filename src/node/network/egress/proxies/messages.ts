import type { CertificatePair } from '../../../../base/crypto/certificate.ts';
import { splitHostPort, type EgressPolicy } from '../../../../protocol/network/network.ts';

/** What the proxy's process needs to know before it starts. */
export type ProxySettings = {
  installation: number;
  /** Address on which it takes what the packet rules turn to it. */
  listenAddress: string;
  port: number;
  resolverPort: number;
  /** The platform's own name servers, `address` or `address:port`. */
  nameServers: string[];
  /** IPv4 addresses that sandboxes ask for names, where they go by the proxy. */
  resolvers: string[];
  /** The platform itself, where sandboxes may reach its sandboxes' URLs. */
  platform: PlatformInside | undefined;
  /** Also open TLS connections that are allowed by their name. */
  opensAllowedNames: boolean;
  /** The authorities (PEM) that vouch for servers on the internet. */
  roots: string;
  /** The one that connections are opened for inspection with. */
  authority: CertificatePair;
  /** User and group that it runs as once it listens. */
  userId: number;
};

/** A name server of the settings, as it is connected to. */
export function nameServerOf(text: string): { address: string; port: number } {
  const { host, port = 53 } = splitHostPort(text);
  return { address: host, port };
}

/** How sandboxes reach the URLs of sandboxes. */
export type PlatformInside = {
  /** Names are `{port}-{sandboxId}.` and this. */
  domain: string;
  /** What the names lead to inside of sandboxes. */
  insideAddress: string;
  /** Ports there that speak HTTP, and TLS. */
  httpPorts: number[];
  tlsPorts: number[];
  /** The edge's port without TLS. */
  edge: { address: string; port: number };
};

/** From the node to the proxy. */
export type ToProxy =
  | { kind: 'start'; settings: ProxySettings }
  /** Answered with `done`. */
  | { kind: 'set'; id: number; slot: number; policy: EgressPolicy }
  | { kind: 'remove'; id: number; slot: number }
  /** Answered with `done` as soon as the process comes to it. */
  | { kind: 'ping'; id: number };

/** Something that the proxy did not let through. */
export type Denial = { host: string; port: number; rule: string };

/** From the proxy to the node. */
export type FromProxy =
  | { kind: 'ready' }
  | { kind: 'failed'; message: string }
  | { kind: 'done'; id: number }
  /** Something of its own has failed, and one connection with it. */
  | { kind: 'fault'; message: string }
  /** What was denied since the last report: how often, and a sample of it. */
  | { kind: 'denied'; slot: number; count: number; sample: Denial[] };

/** Longest text of a denial, characters: a name of DNS, or a rule that names one. */
const denialTextMax = 512;
const sampleMax = 10;

/** Understands what the proxy says, which reads what strangers write and is not believed more than it must be. */
export function readFromProxy(message: unknown): FromProxy | undefined {
  const { kind, id, slot, count, sample, message: text } = (message ?? {}) as Record<string, unknown>;
  if (kind === 'ready') return { kind };
  if (kind === 'failed' || kind === 'fault') return { kind, message: String(text).slice(0, 4 * denialTextMax) };
  if (kind === 'done' && Number.isSafeInteger(id)) return { kind, id: id as number };
  if (kind !== 'denied' || !isCount(slot) || !isCount(count) || !Array.isArray(sample)) return undefined;
  return { kind, slot, count, sample: sample.slice(0, sampleMax).flatMap(readDenial) };
}

function readDenial(value: unknown): Denial[] {
  const { host, port, rule } = (value ?? {}) as Record<string, unknown>;
  if (typeof host !== 'string' || typeof rule !== 'string' || !isCount(port)) return [];
  return [{ host: host.slice(0, denialTextMax), port, rule: rule.slice(0, denialTextMax) }];
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
