import { protectedRange } from '../../../protocol/network/network.ts';
import { isRedirected } from '../../native/conntrack.ts';
import { giveWay, type Netlink } from '../../native/netlink.ts';
import { openTcpSockets, type TcpSocket } from '../../native/tcp-sockets.ts';
import type { ConnectedSandbox } from './known-sandboxes.ts';
import type { CompiledPolicy } from '../../../protocol/network/egress-policy.ts';
import { permitsDirect } from './policy.ts';

/** Connections of a sandbox that are closed without giving way to other work. */
const closedAtOnce = 50;

/**
 * Closes the connections of a sandbox that its policy denies. The rules have ended them already; programs shall know.
 * What the proxy carries, it has ended itself.
 */
export async function closeDenied(
  netfilter: Netlink,
  { slot, namespace }: ConnectedSandbox,
  policy: CompiledPolicy,
): Promise<void> {
  const sockets = openTcpSockets(namespace);
  const denied: TcpSocket[] = [];
  try {
    for await (const part of sockets.list()) {
      // Those that are not protected lead out of the sandbox, which is few of them.
      denied.push(
        ...part.filter(
          ({ destination, port }) =>
            protectedRange(destination) === undefined && !permitsDirect(policy, 'tcp', destination, port).allowed,
        ),
      );
    }
    for (const [index, socket] of denied.entries()) {
      if (index % closedAtOnce === 0) await giveWay();
      if (!isRedirected(netfilter, slot.address, socket)) sockets.destroy(socket);
    }
  } finally {
    sockets.close();
  }
}
