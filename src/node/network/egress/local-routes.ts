import { tryCommand } from '../../../base/process/command.ts';
import { proxyListenAddress, proxyNetwork } from '../../layout.ts';

/** Networks of which every address is this machine's: where the proxy listens, and what it connects from. */
const localNetworks = (installation: number) => [proxyNetwork(installation), proxyListenAddress(installation)];

/** Makes the kernel take what is for them in. Errors: those of a command. */
export async function addLocalRoutes(installation: number): Promise<void> {
  const routes = localNetworks(installation).map(network =>
    tryCommand(['ip', 'route', 'replace', 'local', network, 'dev', 'lo']),
  );
  await Promise.all(routes);
}

/** Takes the routes off the host. Errors: those of a command. */
export async function removeLocalRoutes(installation: number): Promise<void> {
  for (const network of localNetworks(installation))
    await tryCommand(['ip', 'route', 'del', 'local', network, 'dev', 'lo']);
}
