import { AtollError } from '../../base/error.ts';
import type { NodeProtocol } from '../../protocol/node.ts';
import type { Db } from '../store/database.ts';
import { drainingNodes } from '../store/nodes.ts';
import type { Nodes } from './nodes.ts';

/**
 * Chooses the machine of a new sandbox among those that an operator did not take out. Whether it has room it says itself.
 * Throws `unavailable` when there is none.
 */
export async function placeSandbox(nodes: Nodes, db: Db): Promise<{ nodeId: string; protocol: NodeProtocol }> {
  const closed = await drainingNodes(db);
  const node = nodes.list().find(({ nodeId }) => !closed.has(nodeId));
  if (node) return node;
  throw new AtollError('unavailable', 'No machine takes new sandboxes now; nothing was changed', {
    detail: 'sandbox_no_compatible_node',
  });
}
