import type { CertificatePair } from '../base/crypto/certificate.ts';
import type { NodeBuildProtocol } from './build.ts';
import type { DriverName } from './driver.ts';
import type { ExecutionRef, Kept, MemoryFacts, NodeInfo, NodeProtocol, PausedSandbox } from './node.ts';
import type { ShippedProtocol } from './shipped.ts';
import type { UploadExchange, UploadRef } from './upload.ts';

/** Where a node is, and how it is recognised. */
export type NodePlace = {
  nodeId: string;
  host: string;
  port: number;
  /** SHA-256 of the certificates that the node may show, hex: an earlier certificate of it is refused. */
  certificates: readonly string[];
};

/** How a process of control proves who it is, and whom it trusts. */
export type ControlIdentity = CertificatePair & { /** PEM of the cluster's authority. */ authority: string };

/** How a process of control reaches a machine. */
export type NodeWay = { place: NodePlace; identity: ControlIdentity };

/** The services of a node for other processes. */
export type NodeService = {
  node: NodeProtocol;
  builds: NodeBuildProtocol;
  shipped: ShippedProtocol;
  layers: LayerProtocol;
  pauses: PauseExchange;
  drafts: DraftExchange;
  snapshots: SnapshotExchange;
  uploads: UploadExchange;
  volumeCopies: VolumeExchange;
};

/** The services of a machine for control: those of its node and those of its gate. */
export type MachineService = NodeService & { gate: GateProtocol; transfers: TransferProtocol };

/** A machine that can be called. */
export type Machine = MachineService & {
  /** Gives up the present connection and the calls under way on it; the next call connects anew. */
  drop(): void;
  close(): void;
};

/** What control needs of the network. */
export type ClusterLinks = {
  /** A machine. `way` is called for each new connection. */
  connect(nodeId: string, way: () => Promise<NodeWay>): Machine;
  /** Copies a layer from one machine to another. Errors: those of `LayerProtocol`. */
  copyLayer(digest: string, from: LayerProtocol, to: LayerProtocol): Promise<void>;
  /** Reads the descriptor that a machine has answered to its end, and closes it. */
  read(descriptor: number): AsyncGenerator<Uint8Array>;
  /** Writes to the descriptor that a machine has answered, and closes it. Fails where `bytes` fails. */
  write(descriptor: number, bytes: AsyncIterable<Uint8Array>): Promise<void>;
};

/** A sandbox whose time may end while nobody can tell its node. */
export type ComingEnd = ExecutionRef & {
  /** Milliseconds from the moment at which control wrote this. */
  inMs: number;
  then: 'kill' | 'pause';
  /** Keep memory in the pause, where possible. */
  memory: boolean;
};

/** What control tells a node every other second. */
export type Beat = {
  /**
   * Until when the node may count on control, by the clock of `answer.nowMs` in the gate's process `epoch`. Null: it
   * may not.
   */
  lease: { epoch: string; untilMs: number } | null;
  /** How long after its lease the node serves before it pauses its sandboxes, seconds. */
  isolationSeconds: number;
  /**
   * Control counts this node's sandboxes as paused because it had not heard of the node for too long: those that run
   * must be paused before anything else.
   */
  pauseFirst: boolean;
  /** Sandboxes whose time may end before control can tell the node. */
  ends: ComingEnd[];
};

/** What a node answers to a beat. */
export type BeatAnswer = {
  /** ID of this process of the gate. */
  epoch: string;
  /** Its clock when it answered, one that nobody can set. */
  nowMs: number;
  /** Changes with each boot of the machine. */
  bootId: string;
  /** Release of the program; control talks only to its own release. */
  release: string;
  info: NodeInfo;
  /** The node is pausing its sandboxes because control was away, and takes no work until that is done. */
  isPausing: boolean;
};

/** What the gate of a node does itself. */
export type GateProtocol = {
  /** Keeps the node in touch with control. Any process of control may send one. */
  beat(beat: Beat): Promise<BeatAnswer>;
  /** Makes the key of the next certificate and answers its public half, PEM. The key never leaves the node. */
  newKey(): Promise<string>;
  /** Takes a certificate for that key into use. Errors: `precondition` (it is for another key), `invalid`. */
  exchange(certificate: string): Promise<void>;
};

/** Layers that go from node to node. */
export type LayerProtocol = {
  /** Says which of these layers are not here. */
  missing(digests: string[]): Promise<string[]>;
  /** Size of a layer's image. Errors: `not_found`. */
  bytes(digest: string): Promise<number>;
  /** A descriptor to read a layer's image; the caller owns it. Errors: `not_found`. */
  openRead(digest: string): Promise<{ sizeBytes: number; descriptor: number }>;
  /**
   * Begins a layer: the caller writes its image to the descriptor, which the caller owns. A layer that is not ended
   * within an hour is dropped. Errors: `no_space`, `unavailable` (too many at a time).
   */
  openWrite(digest: string, sizeBytes: number): Promise<{ writeId: string; descriptor: number }>;
  /**
   * Ends a layer of `sizeBytes` bytes. Errors: `invalid` (other bytes than the digest says), `not_found` (ended
   * already), `unavailable` (not all bytes have come).
   */
  keepWrite(writeId: string, sizeBytes: number): Promise<void>;
  /** Drops a layer that was begun. Errors: `not_found` (ended already). */
  dropWrite(writeId: string): Promise<void>;
};

/** Facts of a paused sandbox, and what it needs of a machine that resumes it. */
export type PauseFacts = {
  kept: Kept;
  /** Bytes to send, encrypted. */
  sizeBytes: number;
  /** Layers of its root, lowest first. */
  layers: string[];
  driver: DriverName;
  memory: MemoryFacts;
};

/**
 * What sandboxes have kept, for other machines: records, disk and memory in one stream, encrypted frame by frame with a
 * key (32 bytes, base64url) that is used for one stream only.
 */
export type MemoryExchange<Target, Kept> = {
  /** What it needs of another machine. Errors: `not_found` where it is not here. */
  describe(target: Target): Promise<PauseFacts>;
  /** A connection to read it from; the caller owns it. Errors: `not_found`. */
  openRead(target: Target, key: string): Promise<{ sizeBytes: number; descriptor: number }>;
  /**
   * Begins to receive one: the caller writes the stream to the connection, which the caller owns. What is not ended
   * within an hour is dropped. Errors: `no_space`, `unavailable` (too many at a time).
   */
  openWrite(target: Target, key: string, sizeBytes: number): Promise<{ writeId: string; descriptor: number }>;
  /** Ends it: from now on it is here. Errors: `invalid` (other bytes than were sent), `not_found` (ended already). */
  keepWrite(writeId: string): Promise<Kept>;
  /** Drops what was begun. Errors: `not_found` (ended already). */
  dropWrite(writeId: string): Promise<void>;
};

/** Something that arrives from another machine: its bytes are taken, and then it is kept or dropped. */
export type Arrival<Kept> = {
  take(bytes: AsyncIterable<Uint8Array>): Promise<void>;
  keep(): Promise<Kept>;
  drop(): Promise<void>;
};

/** What `MemoryExchange` does, with streams in place of connections. */
export type MemoryCarrier<Target, Kept> = {
  describe(target: Target): Promise<PauseFacts>;
  /** The receiver of the stream reads it to its end or until it gives up. */
  send(target: Target, key: string): Promise<{ sizeBytes: number; bytes: AsyncIterable<Uint8Array> }>;
  receive(target: Target, key: string, sizeBytes: number): Promise<Arrival<Kept>>;
};

/**
 * Paused sandboxes. Those with volumes are refused (`precondition`): volumes stay on their machine. For a running
 * sandbox, `describe` says what it would be, and about how large, if it were paused with its memory now. A sandbox
 * can't be resumed while it is read.
 */
export type PauseExchange = MemoryExchange<ExecutionRef, PausedSandbox>;
/** The same with streams. */
export type PauseCarrier = MemoryCarrier<ExecutionRef, PausedSandbox>;

/** A draft of a sandbox: each attempt to move it has its own. */
export type DraftRef = ExecutionRef & { draftId: string };

/**
 * Drafts of running sandboxes that are to be moved. A draft holds the state of a sandbox while it runs on, and is sent
 * to the machine that will take it; what the pause keeps later is then sent as the difference from the draft.
 * `describe` makes a draft, during which the sandbox stands still while its memory is written. Errors: `conflict` where
 * somebody else is moving the sandbox, `unavailable` and others where no draft is possible; then everything is sent.
 */
export type DraftExchange = MemoryExchange<DraftRef, void> & {
  /**
   * What the paused sandbox has kept, as in `PauseExchange.openRead`, for a machine that has its draft. Errors:
   * `not_found` where there is no draft.
   */
  openRest(draft: DraftRef, key: string): Promise<{ sizeBytes: number; descriptor: number }>;
  /** Drops a draft, on either machine. Succeeds where there is none. */
  drop(draft: DraftRef): Promise<void>;
};
/** The same with streams. */
export type DraftCarrier = MemoryCarrier<DraftRef, void> & {
  sendRest(draft: DraftRef, key: string): Promise<{ sizeBytes: number; bytes: AsyncIterable<Uint8Array> }>;
  drop(draft: DraftRef): Promise<void>;
};

/** The memory of snapshots, by their IDs. */
export type SnapshotExchange = MemoryExchange<string, void>;
/** The same with streams. */
export type SnapshotCarrier = MemoryCarrier<string, void>;

/** A volume of a machine. */
export type VolumeState = {
  volumeId: string;
  /** A running sandbox has it. */
  isInSandbox: boolean;
  /** When it was last written to, by its machine's count; no earlier state has the same number. */
  changedAtMs: number;
};

/** A volume's content that does not change until it is released. */
type FixedVolume = { fixedId: string; /** Bytes of what is sent, encrypted. */ sizeBytes: number };

/**
 * The content of volumes, for other machines and for the store: data without the holes, encrypted as in
 * `PauseExchange`.
 */
export type VolumeExchange = {
  /** Every volume that is here. */
  states(): Promise<VolumeState[]>;
  /**
   * Fixes the content, for an hour at most. `copy`: a copy of the present content, while the volume stays in use.
   * `seal`: nobody can use the volume until it is released. Errors: `not_found`, `no_space`, `unavailable` (too many at
   * a time), `conflict` (to be sealed, but in use).
   */
  fix(volumeId: string, how: 'copy' | 'seal'): Promise<FixedVolume>;
  /** A connection to read it from; the caller owns it. Errors: `not_found` (released). */
  openRead(fixedId: string, key: string): Promise<{ sizeBytes: number; descriptor: number }>;
  /** Succeeds while the content has been fixed without a break. Errors: `not_found`. */
  requireFixed(fixedId: string): Promise<void>;
  /** Releases the content. Succeeds where it is released already. */
  release(fixedId: string): Promise<void>;
  /** Begins to receive one, as `MemoryExchange.openWrite` does. */
  openWrite(volumeId: string, key: string, sizeBytes: number): Promise<{ writeId: string; descriptor: number }>;
  /** Ends it: it replaces what was here of the volume. Errors: `invalid`, `not_found` (ended already). */
  keepWrite(writeId: string): Promise<void>;
  /** Drops what was begun. Errors: `not_found` (ended already). */
  dropWrite(writeId: string): Promise<void>;
};

/** What `VolumeExchange` does, with streams in place of connections. */
export type VolumeCarrier = Pick<VolumeExchange, 'states' | 'fix' | 'requireFixed' | 'release'> & {
  send(fixedId: string, key: string): Promise<{ sizeBytes: number; bytes: AsyncIterable<Uint8Array> }>;
  receive(volumeId: string, key: string, sizeBytes: number): Promise<Arrival<void>>;
};

/**
 * What a machine sends to a store and gets from it by itself, through signed URLs of one object each, in the order of
 * the parts. The machine has no key of the store. Errors: also those of `BlobStore`.
 */
export type TransferProtocol = {
  sendLayer(digest: string, urls: string[]): Promise<void>;
  receiveLayer(digest: string, sizeBytes: number, urls: string[]): Promise<void>;
  receiveUpload(upload: UploadRef, sizeBytes: number, urls: string[]): Promise<void>;
  sendPause(target: ExecutionRef, key: string, urls: string[]): Promise<void>;
  receivePause(target: ExecutionRef, key: string, sizeBytes: number, urls: string[]): Promise<PausedSandbox>;
  sendSnapshot(snapshotId: string, key: string, urls: string[]): Promise<void>;
  receiveSnapshot(snapshotId: string, key: string, sizeBytes: number, urls: string[]): Promise<void>;
  sendVolume(fixedId: string, key: string, urls: string[]): Promise<void>;
  receiveVolume(volumeId: string, key: string, sizeBytes: number, urls: string[]): Promise<void>;
};

/** What a machine says of itself when it wants to join. */
export type JoiningMachine = {
  nodeId: string;
  /** `host:port` at which control reaches the node. */
  address: string;
  /** PEM, on the curve P-256. */
  publicKey: string;
  /** The certificate of a machine that has joined before (PEM), and a signature by its key. */
  known?: { certificate: string; proof: string };
  /** Absent from machines of an earlier release. */
  machine?: MachineClaims;
};

/** What a machine says of itself: it decides whether the machine is of use to the cluster. */
export type MachineClaims = {
  release: string;
  /** As the kernel names it, e.g. `x86_64`. */
  architecture: string;
  /** Time on its clock, milliseconds since 1970. */
  nowMs: number;
};

/** Asks control to let a machine join, with a token that an operator made. */
export type JoinRequest = JoiningMachine & {
  tokenId: string;
  /** Proves that the sender has the token, which is never sent itself. */
  proof: string;
};

/** Asks control to let the machine of a pod join, with the token of the pod's service account. */
export type PodJoinRequest = JoiningMachine & { token: string };

/** What a machine gets when it may join. */
export type MachineCertificate = {
  certificate: string;
  /** PEM of the cluster's authority. */
  authority: string;
};

/** The same for machines that join with an operator's token. */
export type JoinAnswer = MachineCertificate & {
  /** Proves that whoever answers made the token. */
  proof: string;
};

/** Audience of the service account tokens with which pods join. */
export const podTokenAudience = 'atoll';

/** The service account of the pods whose machines may join. */
export type ServiceAccount = { namespace: string; name: string };

/**
 * Asks Kubernetes which pod a token belongs to, and answers the addresses of that pod's machine. Errors:
 * `unauthenticated`, `unavailable`.
 */
export type ReviewPod = (token: string) => Promise<{ hostAddresses: string[] }>;

/** Asks Kubernetes for the addresses of the machines that are cordoned. Errors: `unavailable`. */
export type CordonedAddresses = () => Promise<ReadonlySet<string>>;
