import { AtollError } from '../../base/error.ts';
import type { NodeProtocol } from '../../protocol/node.ts';
import type { Nodes } from './nodes.ts';

/** Chooses the machine of a new sandbox. With one machine there is no choice; whether it has room it says itself. */
export function placeSandbox(nodes: Nodes): { nodeId: string; protocol: NodeProtocol } {
  const [node] = nodes.list();
  if (node) return node;
  throw new AtollError('unavailable', 'No machine is connected that could run a sandbox', {
    detail: 'sandbox_no_compatible_node',
  });
}
