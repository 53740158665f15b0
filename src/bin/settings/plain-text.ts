import { isLoopback, type Settings } from './settings.ts';

/**
 * A warning for an operator whose port other machines reach without TLS; null if nobody can read along. A trusted load
 * balancer speaks TLS itself.
 */
export function plainTextWarning({ host, port, tlsPort, trustForwarded }: Settings): string | null {
  if (isLoopback(host) || trustForwarded) return null;
  const remedy =
    tlsPort === undefined
      ? 'Set ATOLL_TLS_PORT, or let a proxy with TLS listen and set ATOLL_HOST=127.0.0.1'
      : `Give clients port ${tlsPort} and close ${port} in the firewall`;
  return (
    `Warning: other machines reach port ${port} of ${host} without TLS, and whoever reads along has the API keys. ` +
    `${remedy} (docs/operating.md).\n`
  );
}
