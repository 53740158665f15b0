import { protectedRange } from '../../../protocol/network/network.ts';
import { isRedirected } from '../../native/conntrack.ts';
import { giveWay, type Netlink } from '../../native/netlink.ts';
import { openTcpSockets, type TcpSocket } from '../../native/tcp-sockets.ts';
import type { ConnectedSandbox } from './known-sandboxes.ts';
import type { CompiledPolicy } from '../../../protocol/network/egress-policy.ts';
import { permitsDirect } from './policy.ts';

/** How many connections of a sandbox are closed before other work gets a turn. */
const closedAtOnce = 50;

/**
 * Closes the connections of a sandbox that its policy denies. The rules have already ended them; this tells the
 * programs. The proxy has ended the connections that it carries itself.
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
      // Only those that are not protected lead out of the sandbox: they are few.
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
