import { AtollError } from '../../base/error.ts';
import type { ClusterLinks } from '../../protocol/cluster.ts';
import type { NodeInfo, NodeProtocol } from '../../protocol/node.ts';

/** `detail` of the error where no machine in reach has what a sandbox needs, for programs. */
export const noCompatibleNode = 'sandbox_no_compatible_node';

/** A machine that takes no calls now. `connecting`: it answers, but is not ready yet; any other is out of reach. */
export type AwayNode = {
  nodeId: string;
  isConnecting: boolean;
  sinceUs: number;
  info: NodeInfo | null;
  release?: string;
};

/** Reads from and writes to descriptors that are connections to another machine. */
export type Carried = Pick<ClusterLinks, 'read' | 'write'>;

/** The machines that host sandboxes, by their IDs. */
export type Nodes = {
  /**
   * `info`: the last report of a machine in a cluster, used for placement. `release`: of its program. `sinceUs`: since
   * when it takes calls, if that is not since this process began.
   */
  list(): ReadonlyArray<{
    nodeId: string;
    protocol: NodeProtocol;
    info?: NodeInfo;
    release?: string;
    sinceUs?: number;
  }>;
  /** Throws `unavailable` for a node that is not connected. */
  get(nodeId: string): NodeProtocol;
  /** The other machines of a cluster. */
  away?(): AwayNode[];
  /** How to use the descriptors that machines of a cluster answer. Absent: they are of files. */
  readonly carried?: Carried;
};

/** Whether the machines belong to a cluster, and so can be taken out. */
export const isCluster = ({ away }: Nodes): boolean => away !== undefined;

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
