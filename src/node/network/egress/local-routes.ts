import { tryCommand } from '../../../base/process/command.ts';
import { proxyListenAddress, proxyNetwork } from '../../layout.ts';

/** Networks whose addresses all belong to this machine: where the proxy listens, and what it connects from. */
const localNetworks = (installation: number) => [proxyNetwork(installation), proxyListenAddress(installation)];

/** Makes the kernel accept packets for these networks. Errors: those of a command. */
export async function addLocalRoutes(installation: number): Promise<void> {
  const routes = localNetworks(installation).map(network =>
    tryCommand(['ip', 'route', 'replace', 'local', network, 'dev', 'lo']),
  );
  await Promise.all(routes);
}

/** Removes the routes from the host. Errors: those of a command. */
export async function removeLocalRoutes(installation: number): Promise<void> {
  for (const network of localNetworks(installation))
    await tryCommand(['ip', 'route', 'del', 'local', network, 'dev', 'lo']);
}
