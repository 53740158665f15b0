import type { CertificatePair } from '../../../base/certificate.ts';
import type { EgressPolicy } from '../../../protocol/network.ts';

/** What the proxy's process needs to know before it starts. */
export type ProxySettings = {
  installation: number;
  /** Address on which it takes what the packet rules turn to it. */
  listenAddress: string;
  port: number;
  resolverPort: number;
  /** The platform's own name servers, `address` or `address:port`. */
  nameServers: string[];
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
  | { kind: 'remove'; id: number; slot: number };

/** Something that the proxy did not let through. */
export type Denial = { host: string; port: number; rule: string };

/** From the proxy to the node. */
export type FromProxy =
  | { kind: 'ready' }
  | { kind: 'failed'; message: string }
  | { kind: 'done'; id: number }
  /** What was denied since the last report: how often, and a sample of it. */
  | { kind: 'denied'; slot: number; count: number; sample: Denial[] };
