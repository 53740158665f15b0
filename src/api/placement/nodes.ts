import { AtollError } from '../../base/error.ts';
import type { NodeProtocol } from '../../protocol/node.ts';

/** The machines that host sandboxes, by their IDs. */
export type Nodes = {
  list(): ReadonlyArray<{ nodeId: string; protocol: NodeProtocol }>;
  /** Throws `unavailable` for a node that is not connected. */
  get(nodeId: string): NodeProtocol;
};

/** The one node of an installation on a single machine. */
export function singleNode(nodeId: string, protocol: NodeProtocol): Nodes {
  return {
    list: () => [{ nodeId, protocol }],
    get(wanted) {
      if (wanted === nodeId) return protocol;
      throw new AtollError('unavailable', `The machine of this sandbox (node ${wanted}) is not connected`);
    },
  };
}
