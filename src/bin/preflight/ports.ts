import { AtollError, messageOf, systemCodeOf } from '../../base/error.ts';
import type { Settings } from '../settings/settings.ts';

/**
 * Fails with `conflict` if a port can't be opened, and with `unavailable` if the address is not this machine's: at
 * once, and not after minutes of making the base template.
 */
export function requirePortsFree(settings: Settings): void {
  for (const port of [settings.port, settings.tlsPort ?? 0]) {
    try {
      Bun.listen({ hostname: settings.host, port, socket: { data() {} } }).stop(true);
    } catch (error) {
      throw portError(settings, error, port);
    }
  }
}

/** Says why a port can't be opened, and which setting to change. `refused`: the port, if it is known. */
export function portError({ host, port, tlsPort }: Settings, cause: unknown, refused?: number): AtollError {
  if (systemCodeOf(cause) === 'EADDRNOTAVAIL')
    // An address that a tunnel, a lease or a failover brings may come later: a service tries again.
    return new AtollError(
      'unavailable',
      `ATOLL_HOST is ${host}, which is no address of this machine: set it to one that \`ip address\` lists, to ` +
        '127.0.0.1, or to 0.0.0.0 for all.',
      { cause },
    );
  const which =
    refused === undefined ? `Port ${port}${tlsPort === undefined ? '' : ` or ${tlsPort}`}` : `Port ${refused}`;
  const variable = refused !== undefined && refused === tlsPort && refused !== port ? 'ATOLL_TLS_PORT' : 'ATOLL_PORT';
  return new AtollError(
    'conflict',
    `${which} of ${host} can't be opened (${messageOf(cause)}). End what uses it, or set ${variable} to another one.`,
    { cause },
  );
}
