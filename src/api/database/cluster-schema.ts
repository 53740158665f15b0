import type { BlobKind, BlobOwner, BlobState } from '../blob/record.ts';
import type { Fixed, Flag } from './column-types.ts';

/** The tables of machines that join and of their store, by the conventions of `Tables`. */
export type ClusterTables = {
  cluster_authority: ClusterAuthorityTable;
  cluster_invites: ClusterInviteTable;
  cluster_nodes: ClusterNodeTable;
  blob_store: BlobStoreTable;
  blobs: BlobTable;
  blob_refs: BlobRefTable;
  build_steps: BuildStepTable;
  sandbox_homes: SandboxHomeTable;
};

/** The authority that signs the certificates of a cluster's machines. One row, of place 1. */
type ClusterAuthorityTable = {
  place: Fixed<number>;
  /** PEM. */
  certificate: Fixed<string>;
  /** Output of `encrypt`, by the seed. */
  sealed_key: Fixed<string>;
};

/** Invitations of machines. Each is valid once: the join deletes it. */
type ClusterInviteTable = {
  token_id: Fixed<string>;
  /** The SHA-256 of the token's secret, encrypted by the seed. */
  sealed_key: Fixed<string>;
  expires_at_us: Fixed<number>;
};

/** The machines that have joined. What the operator wants of a machine is in `nodes`. */
type ClusterNodeTable = {
  node_id: Fixed<string>;
  /** `host:port`. */
  address: string;
  /** SHA-256 of the certificates that it may show, hex, the newest last. */
  certificates_json: string;
  /** When it should get a new certificate. */
  renew_at_us: number;
  joined_at_us: number;
  /** Until when it may count on control. Null: it has not answered yet. */
  lease_until_us: number | null;
  /**
   * It was silent for so long that its sandboxes count as paused; it gets no lease before it has paused them itself.
   */
  given_up: Flag;
  boot_id: string | null;
  /** `NodeInfo`, as last reported. */
  info_json: string | null;
};

/** The part of the store that is this cluster's. One row, of place 1. */
type BlobStoreTable = {
  place: Fixed<number>;
  /** All of its keys begin with this (UUID). */
  store_id: Fixed<string>;
};

/** The content of the store. A row is written before its objects and removed after them. */
type BlobTable = {
  blob_id: Fixed<string>;
  kind: Fixed<BlobKind>;
  /** See `BlobRecord`. At most one blob per kind and name is there or being uploaded. */
  name: Fixed<string>;
  state: BlobState;
  bytes: number;
  /** The key that encrypts its content, encrypted by the seed; null: it is not encrypted. */
  sealed_key: Fixed<string | null>;
  /** `PauseFacts` of a pause; null for a layer. */
  facts_json: string | null;
  /** The process that uploads it, while that goes on. */
  replica_id: string | null;
  changed_at_us: number;
};

/** What needs a blob. A blob that nothing needs is collected after a while. */
type BlobRefTable = { blob_id: Fixed<string>; owner_kind: Fixed<BlobOwner['kind']>; owner_id: Fixed<string> };

/** The outcomes of build steps, for machines that have not carried them out. */
type BuildStepTable = {
  team_id: Fixed<string>;
  /** The digest of everything that the step depends on. */
  step_key: Fixed<string>;
  /** Its digest; null where the step changed no file. */
  layer: string | null;
  used_at_us: number;
};

/** The machines that sandboxes were on before they went on elsewhere. */
type SandboxHomeTable = { sandbox_id: Fixed<string>; node_id: Fixed<string>; left_at_us: number };
