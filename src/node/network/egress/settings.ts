import type { PlatformInside } from './proxies/messages.ts';
import { platformInsideAddress } from '../../layout.ts';

/** Ports by which a platform's URLs are reached where they name none (RFC 9110, 4.2). */
const usualPorts = { http: 80, tls: 443 } as const;

/** What the operator may choose about traffic out of sandboxes. */
export type EgressSettings = {
  /** What each sandbox may send, and receive, octets a second. Absent: as much as there is. */
  bandwidthBytesPerSecond?: number;
  /**
   * TLS connections that a policy allows by their name are opened as well, so that the requests inside can't name
   * another host that the same server answers for. Programs must trust the installation's authority then, and speak
   * HTTP/1.1.
   */
  opensAllowedNames?: boolean;
  /** Authorities (PEM) that vouch for servers on the internet; the host's own unless given. */
  roots?: string;
  /**
   * Lets sandboxes reach the URLs of sandboxes, `{port}-{sandboxId}.{domain}`, in spite of the host being closed to
   * them.
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
