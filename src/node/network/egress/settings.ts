import type { PlatformInside } from './proxies/messages.ts';
import { platformInsideAddress } from '../../layout.ts';

/** The ports of a platform's URLs that name none (RFC 9110, 4.2). */
const usualPorts = { http: 80, tls: 443 } as const;

/** What the operator may choose about traffic out of sandboxes. */
export type EgressSettings = {
  /** Octets a second that each sandbox may send, and receive. Absent: no limit. */
  bandwidthBytesPerSecond?: number;
  /**
   * Also opens TLS connections that a policy allows by their name, so that the requests inside can't name another host
   * that the same server answers for. Programs must then trust the installation's authority, and speak HTTP/1.1.
   */
  opensAllowedNames?: boolean;
  /** Authorities (PEM) that vouch for servers on the internet; the host's own unless given. */
  roots?: string;
  /**
   * Lets sandboxes reach the URLs of sandboxes, `{port}-{sandboxId}.{domain}`, although the host is closed to them.
   * `httpPort`: where the platform's edge listens at `address`; `tlsPort`: its TLS port as URLs show it.
   */
  platform?: { domain: string; address: string; httpPort: number; tlsPort?: number };
};

/** How sandboxes reach the platform's own URLs. */
export function platformInside(
  installation: number,
  { domain, address, httpPort, tlsPort }: NonNullable<EgressSettings['platform']>,
): PlatformInside {
  return {
    domain: domain.toLowerCase(),
    insideAddress: platformInsideAddress(installation),
    httpPorts: [...new Set([usualPorts.http, httpPort])],
    tlsPorts: [...new Set([usualPorts.tls, ...(tlsPort === undefined ? [] : [tlsPort])])],
    edge: { address, port: httpPort },
  };
}
