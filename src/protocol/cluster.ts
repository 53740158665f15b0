import type { CertificatePair } from '../base/crypto/certificate.ts';
import type { NodeBuildProtocol } from './build.ts';
import type { DriverName } from './driver.ts';
import type { ExecutionRef, Kept, MemoryFacts, NodeInfo, NodeProtocol, PausedSandbox } from './node.ts';
import type { ShippedProtocol } from './shipped.ts';
import type { UploadExchange, UploadRef } from './upload.ts';

/** Where a node is, and by what it is known. */
export type NodePlace = {
  nodeId: string;
  host: string;
  port: number;
  /** SHA-256 of the certificates that it may show, hex: an earlier one of it is refused. */
  certificates: readonly string[];
};

/** How a process of control proves who it is, and whom it believes. */
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

/** The services of a machine for control: its node's, and those of its gate. */
export type MachineService = NodeService & { gate: GateProtocol; transfers: TransferProtocol };

/** A machine that can be called. */
export type Machine = MachineService & {
  /** Gives up the present connection, with the calls that are under way on it; the next call connects anew. */
  drop(): void;
  close(): void;
};

/** What control needs of the network. */
export type ClusterLinks = {
  /** A machine; the way to it is asked for at each connection. */
  connect(nodeId: string, way: () => Promise<NodeWay>): Machine;
  /** Copies a layer from one machine to another. Errors: those of `LayerProtocol`. */
  copyLayer(digest: string, from: LayerProtocol, to: LayerProtocol): Promise<void>;
  /** The bytes of a descriptor that a machine has answered, until it ends. It is closed in the end. */
  read(descriptor: number): AsyncGenerator<Uint8Array>;
  /** Writes to a descriptor that a machine has answered, and closes it. Fails where the bytes do. */
  write(descriptor: number, bytes: AsyncIterable<Uint8Array>): Promise<void>;
};

/** A sandbox whose time may end while nobody can tell its node so. */
export type ComingEnd = ExecutionRef & {
  /** Milliseconds from the moment at which control has written this. */
  inMs: number;
  then: 'kill' | 'pause';
  /** Keep memory in the pause, where it can be kept. */
  memory: boolean;
};

/** What control says to a node every other second. */
export type Beat = {
  /**
   * Until when the node may count on control, on the clock of `answer.nowMs` in the process `epoch` of the gate. Null:
   * it may not.
   */
  lease: { epoch: string; untilMs: number } | null;
  /** For how long after its lease the node serves before it pauses its sandboxes, seconds. */
  isolationSeconds: number;
  /**
   * Control counts the sandboxes of this node as paused, because it had not heard of the node for so long: those that
   * run must be paused before anything else.
   */
  pauseFirst: boolean;
  /** Sandboxes whose end may come before control could tell of it. */
  ends: ComingEnd[];
};

/** What a node says to that. */
export type BeatAnswer = {
  /** ID of this process of the gate. */
  epoch: string;
  /** Its clock, which nobody can set, when it answered. */
  nowMs: number;
  /** Changes with each boot of the machine. */
  bootId: string;
  /** Release of the program; control speaks with its own alone. */
  release: string;
  info: NodeInfo;
  /** It is pausing its sandboxes, because control was away, and takes no work until that is done. */
  isPausing: boolean;
};

/** What the gate of a node does itself. */
export type GateProtocol = {
  /** Keeps the node in touch with control. Anybody of control may send one. */
  beat(beat: Beat): Promise<BeatAnswer>;
  /** Makes the key of the next certificate and answers its public half, PEM. It never leaves the node. */
  newKey(): Promise<string>;
  /** Takes a certificate for that key into use. Errors: `precondition` (it is for another key), `invalid`. */
  exchange(certificate: string): Promise<void>;
};

/** Layers that go from node to node. */
export type LayerProtocol = {
  /** Which of these layers are not here. */
  missing(digests: string[]): Promise<string[]>;
  /** Size of a layer's image. Errors: `not_found`. */
  bytes(digest: string): Promise<number>;
  /** A descriptor to read a layer's image, the caller's from now on. Errors: `not_found`. */
  openRead(digest: string): Promise<{ sizeBytes: number; descriptor: number }>;
  /**
   * Begins a layer: the caller writes its image to the descriptor, which is the caller's from now on. What is not ended
   * within an hour is dropped. Errors: `no_space`, `unavailable` (too many at a time).
   */
  openWrite(digest: string, sizeBytes: number): Promise<{ writeId: string; descriptor: number }>;
  /**
   * Ends a layer of so many bytes. Errors: `invalid` (its bytes are others), `not_found` (ended already), `unavailable`
   * (not all of it has come).
   */
  keepWrite(writeId: string, sizeBytes: number): Promise<void>;
  /** Drops a layer that was begun. Errors: `not_found` (ended already). */
  dropWrite(writeId: string): Promise<void>;
};

/** What a paused sandbox is, and what it needs of a machine that is to resume it. */
export type PauseFacts = {
  kept: Kept;
  /** Bytes of what is sent, encrypted. */
  sizeBytes: number;
  /** Layers of its root, lowest first. */
  layers: string[];
  driver: DriverName;
  memory: MemoryFacts;
};

/**
 * What sandboxes have kept, for other machines: records, disk and memory in one stream, encrypted frame by frame with a
 * key that is used for one of them only (32 bytes, base64url).
 */
export type MemoryExchange<Target, Kept> = {
  /** What it needs of another machine. Errors: `not_found` where it is not here. */
  describe(target: Target): Promise<PauseFacts>;
  /** A connection to read it from, the caller's from now on. Errors: `not_found`. */
  openRead(target: Target, key: string): Promise<{ sizeBytes: number; descriptor: number }>;
  /**
   * Begins to take one: the caller writes the stream to the connection, which is the caller's from now on. What is not
   * ended within an hour is dropped. Errors: `no_space`, `unavailable` (too many at a time).
   */
  openWrite(target: Target, key: string, sizeBytes: number): Promise<{ writeId: string; descriptor: number }>;
  /** Ends it: it is here. Errors: `invalid` (the bytes are others), `not_found` (ended already). */
  keepWrite(writeId: string): Promise<Kept>;
  /** Drops what was begun. Errors: `not_found` (ended already). */
  dropWrite(writeId: string): Promise<void>;
};

/** Something that comes from another machine: its bytes are taken, and then it is kept or dropped. */
export type Arrival<Kept> = {
  take(bytes: AsyncIterable<Uint8Array>): Promise<void>;
  keep(): Promise<Kept>;
  drop(): Promise<void>;
};

/** What `MemoryExchange` does, with streams in place of connections. */
export type MemoryCarrier<Target, Kept> = {
  describe(target: Target): Promise<PauseFacts>;
  /** Who gets the stream reads it, to its end or until it gives up. */
  send(target: Target, key: string): Promise<{ sizeBytes: number; bytes: AsyncIterable<Uint8Array> }>;
  receive(target: Target, key: string, sizeBytes: number): Promise<Arrival<Kept>>;
};

/**
 * Paused sandboxes. Those with volumes are refused (`precondition`): these stay on their machine. `describe` of one
 * that runs says what it would be if it were paused with its memory now, and about how large. A sandbox is not resumed
 * while it is read.
 */
export type PauseExchange = MemoryExchange<ExecutionRef, PausedSandbox>;
/** The same with streams. */
export type PauseCarrier = MemoryCarrier<ExecutionRef, PausedSandbox>;

/** A draft of a sandbox: each try to move it has one of its own. */
export type DraftRef = ExecutionRef & { draftId: string };

/**
 * Drafts of running sandboxes that are to be moved: what they are while they run on, for the machine that is to have
 * them. What their pause keeps then is sent as what differs from that. `describe` takes one, for which the sandbox
 * stands still as long as its memory is written. Errors: `conflict` where somebody else is moving it, `unavailable` and
 * others where there can be none; all is sent then.
 */
export type DraftExchange = MemoryExchange<DraftRef, void> & {
  /**
   * What the paused sandbox has kept, as `PauseExchange.openRead` has it, for a machine that has its draft. Errors:
   * `not_found` where there is none.
   */
  openRest(draft: DraftRef, key: string): Promise<{ sizeBytes: number; descriptor: number }>;
  /** Drops one, on either machine. What is not here is dropped already. */
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
  /** A sandbox that runs has it. */
  isInSandbox: boolean;
  /** When it was last written to, as its machine counts; no earlier state has the same. */
  changedAtMs: number;
};

/** A volume's content that does not change until it is released. */
type FixedVolume = { fixedId: string; /** Bytes of what is sent, encrypted. */ sizeBytes: number };

/**
 * The content of volumes for other machines and for the store: its data without the holes, encrypted as `PauseExchange`
 * does it.
 */
export type VolumeExchange = {
  /** Every volume that is here. */
  states(): Promise<VolumeState[]>;
  /**
   * Fixes the content for an hour at most. `copy`: as it is now, while it is used on, in a copy of its own. `seal`:
   * nobody can use the volume until it is released. Errors: `not_found`, `no_space`, `unavailable` (too many at a
   * time), `conflict` (to be sealed, and in use).
   */
  fix(volumeId: string, how: 'copy' | 'seal'): Promise<FixedVolume>;
  /** A connection to read it from, the caller's from now on. Errors: `not_found` (released). */
  openRead(fixedId: string, key: string): Promise<{ sizeBytes: number; descriptor: number }>;
  /** Answers while it has been fixed without a break. Errors: `not_found`. */
  requireFixed(fixedId: string): Promise<void>;
  /** What is released already is no error. */
  release(fixedId: string): Promise<void>;
  /** Begins to take one, as `MemoryExchange.openWrite` does. */
  openWrite(volumeId: string, key: string, sizeBytes: number): Promise<{ writeId: string; descriptor: number }>;
  /** Ends it: it is here, in place of what was here of the volume. Errors: `invalid`, `not_found` (ended already). */
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
 * What a machine sends to a store and gets from it by itself: through signed URLs of one object each, in the order of
 * its parts. It has no key of the store. Errors also: those of `BlobStore`.
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

/** What a machine says of itself that wants to join. */
export type JoiningMachine = {
  nodeId: string;
  /** `host:port` at which control reaches the node. */
  address: string;
  /** PEM, on the curve P-256. */
  publicKey: string;
  /** The certificate of a machine that has joined before (PEM), and a signature by its key. */
  known?: { certificate: string; proof: string };
  /** Absent of a machine of an earlier release. */
  machine?: MachineClaims;
};

/** What a machine is, as it says itself: whether it can be of use to the cluster. */
export type MachineClaims = {
  release: string;
  /** As the kernel names it, e.g. `x86_64`. */
  architecture: string;
  /** What its clock shows, milliseconds since 1970. */
  nowMs: number;
};

/** Asks control to let a machine join, by a token that an operator made. */
export type JoinRequest = JoiningMachine & {
  tokenId: string;
  /** Proves that the sender has the token, which is never sent itself. */
  proof: string;
};

/** Asks control to let the machine of a pod join, by the token of the pod's service account. */
export type PodJoinRequest = JoiningMachine & { token: string };

/** What a machine gets that may join. */
export type MachineCertificate = {
  certificate: string;
  /** PEM of the cluster's authority. */
  authority: string;
};

/** The same for who joined by an operator's token. */
export type JoinAnswer = MachineCertificate & {
  /** Proves that the answer is from who made the token. */
  proof: string;
};

/** For whom tokens of service accounts are made by which pods join. */
export const podTokenAudience = 'atoll';

/** The service account of the pods whose machines may join. */
export type ServiceAccount = { namespace: string; name: string };

/**
 * Asks Kubernetes whose a token is, and answers the addresses of the machine of that pod. Errors: `unauthenticated`,
 * `unavailable`.
 */
export type ReviewPod = (token: string) => Promise<{ hostAddresses: string[] }>;

/** Asks Kubernetes for the addresses of the machines that are cordoned. Errors: `unavailable`. */
export type CordonedAddresses = () => Promise<ReadonlySet<string>>;
