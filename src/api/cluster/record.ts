import type { NodeInfo } from '../../protocol/node.ts';

/** A machine that has joined. */
export type ClusterNode = {
  nodeId: string;
  /** `host:port`. */
  address: string;
  /** SHA-256 of the certificates that it may show, the newest last. */
  certificates: string[];
  renewAtUs: number;
  joinedAtUs: number;
  leaseUntilUs: number | null;
  /** Whatever ran there counts as paused. */
  isGivenUp: boolean;
  bootId: string | null;
  info: NodeInfo | null;
};
