import type { CertificatePair } from '../../../../base/crypto/certificate.ts';
import { splitHostPort, type EgressPolicy } from '../../../../protocol/network/network.ts';

/** What the proxy's process needs before it starts. */
export type ProxySettings = {
  installation: number;
  /** The address at which it takes connections that the packet rules redirect to it. */
  listenAddress: string;
  port: number;
  resolverPort: number;
  /** The platform's own name servers, `address` or `address:port`. */
  nameServers: string[];
  /** IPv4 addresses that sandboxes ask for names, if the questions go through the proxy. */
  resolvers: string[];
  /** The platform itself, if sandboxes may reach the URLs of its sandboxes. */
  platform: PlatformInside | undefined;
  /** Also opens TLS connections that are allowed by their name. */
  opensAllowedNames: boolean;
  /** The authorities (PEM) that vouch for servers on the internet. */
  roots: string;
  /** The authority by which connections are opened for inspection. */
  authority: CertificatePair;
  /** The user and group that it runs as once it listens. */
  userId: number;
};

/** A name server of the settings, as address and port. */
export function nameServerOf(text: string): { address: string; port: number } {
  const { host, port = 53 } = splitHostPort(text);
  return { address: host, port };
}

/** How sandboxes reach the URLs of sandboxes. */
export type PlatformInside = {
  /** Names are `{port}-{sandboxId}.` followed by this. */
  domain: string;
  /** The address that the names lead to inside sandboxes. */
  insideAddress: string;
  /** Its ports that speak HTTP, and TLS. */
  httpPorts: number[];
  tlsPorts: number[];
  /** The edge's port without TLS. */
  edge: { address: string; port: number };
};

/** Messages from the node to the proxy. */
export type ToProxy =
  | { kind: 'start'; settings: ProxySettings }
  /** Answered with `done`. */
  | { kind: 'set'; id: number; slot: number; policy: EgressPolicy }
  | { kind: 'remove'; id: number; slot: number }
  /** Answered with `done` as soon as the process gets to it. */
  | { kind: 'ping'; id: number };

/** A connection or question that the proxy refused. */
export type Denial = { host: string; port: number; rule: string };

/** Messages from the proxy to the node. */
export type FromProxy =
  | { kind: 'ready' }
  | { kind: 'failed'; message: string }
  | { kind: 'done'; id: number }
  /** An error in the proxy itself, which has ended one connection. */
  | { kind: 'fault'; message: string }
  /** Denials since the last report: how many, and a sample. */
  | { kind: 'denied'; slot: number; count: number; sample: Denial[] };

/** Longest text of a denial, characters: a DNS name, or a rule that contains one. */
const denialTextMax = 512;
const sampleMax = 10;

/**
 * Parses a message of the proxy. The proxy reads what strangers write, so its messages are not trusted more than
 * needed.
 */
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
