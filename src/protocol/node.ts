import type { Static } from '@sinclair/typebox';
import type { ReadSandboxLogs, SandboxLogEntry } from './logs.ts';
import type { DriverName } from './driver.ts';
import type { EgressPolicy } from './network/network.ts';
import type { NodeUsage, SampleRange, SandboxSample, TrafficCounters } from './node-usage.ts';
import type { SandboxVolume, VolumeProtocol } from './volume.ts';
import type { Create, EachStart, Image, Resources, Resume, Started } from './wire/start-schemas.ts';

/**
 * The node protocol: the only way from the api and the edge to a machine that hosts sandboxes.
 * Every message is plain JSON, so that the same calls work in one process and over a connection.
 * Every command to a sandbox names its execution id: a late command can't hit a successor.
 */

/** A template as a node needs it. */
export type TemplateImage = Static<typeof Image>;

/** A sandbox with its start command running and ready, as a snapshot. */
export type StartedImage = Static<typeof Started>;

/** Limits of a sandbox. */
export type SandboxResources = Static<typeof Resources>;

/** Policy for what leaves the sandbox. */
export type SandboxNetwork = EgressPolicy;

/** What a sandbox is told at each of its starts. */
export type StartSettings = Static<typeof EachStart>;

/** A sandbox that is to start. */
export type CreateSandbox = Static<typeof Create>;

/** A paused sandbox that is to start again. */
export type ResumeSandbox = Static<typeof Resume>;

/** One incarnation of a sandbox: every command names it, so that a late one can't hit a successor. */
export type ExecutionRef = { sandboxId: string; executionId: string };

/** A sandbox that runs. */
export type NodeSandbox = ExecutionRef & {
  /** Epoch milliseconds at which the agent was ready. */
  startedAtMs: number;
  resources: SandboxResources;
  /** Its disk has failed: its files can't be changed any more; see `SandboxIncident`. */
  diskFailed: boolean;
};

/** What a paused sandbox or a snapshot has kept: everything, or files alone. */
export type Kept = 'memory' | 'filesystem';

/** A paused sandbox on its node. */
export type PausedSandbox = ExecutionRef & {
  kept: Kept;
  pausedAtMs: number;
  /** Its memory was kept while its agent did not answer, if that was checked: a restore brings back the same state. */
  agentUnresponsive?: true;
};

/** How a sandbox is paused. */
export type PauseOptions = {
  /** Keep its memory together with its files. */
  memory: boolean;
  /** Pause only if its agent answers. */
  requireAgent?: boolean;
  /** Record whether its agent answered. That may take seconds, so a caller in a hurry leaves it out. */
  noteAgent?: boolean;
};

/**
 * An orphan: the store did not know it, or its node can't read its record. It does not run (but see `reason`), and it
 * stays complete until an operator decides.
 */
export type SetAsideSandbox = {
  sandboxId: string;
  /** Its record; null where it can't be read: then the sandbox can only be removed. */
  known: {
    executionId: string;
    kept: Kept;
    image: Pick<TemplateImage, 'templateId' | 'buildId'>;
    resources: SandboxResources;
    volumes: SandboxVolume[];
    startedAtMs: number;
  } | null;
  sinceMs: number;
  /** Why it was set aside, for the operator. */
  reason: string;
};

/** A sandbox that was resumed. */
export type ResumedSandbox = NodeSandbox & {
  /** Whether it has its memory as it was, or booted from its files. */
  from: Kept;
};

/** A request to take a snapshot of a running or paused sandbox. */
export type TakeSnapshot = ExecutionRef & {
  /** Names the snapshot's memory on the node (UUID). */
  snapshotId: string;
  /** False: the files alone, whatever the node can do. */
  memory: boolean;
  /** The snapshot is deleted as soon as others have started from it: its memory need not survive a loss of power. */
  transient?: true;
};

/** A snapshot that was taken. */
export type Snapshot = {
  /** Layer digests, lowest first: those of the sandbox, and what it wrote on top. */
  layers: string[];
  kept: Kept;
  /** Driver of the sandbox. */
  driver: DriverName;
};

/** Says whether a node can checkpoint the memory of a sandbox and, if not, why. */
export type MemoryAbility = { kept: true } | { kept: false; reason: string };

/** Why a sandbox ended although nobody told it to. */
export type OwnEnd = 'init_exited' | 'out_of_memory';

/**
 * Something that happened to a sandbox unasked. It ended; or its memory was lost during the resume, so it is paused
 * with its files; or its disk failed. With a failed disk it runs on but can change no file; after a pause with its
 * files and a resume it has what was on the disk before, where that can be repaired.
 */
export type SandboxIncident = ExecutionRef & { reason: OwnEnd | 'memory_lost' | 'disk_failed' };

/** How far a reader has read the incidents of sandboxes. Each process of the node counts from 0. */
export type IncidentsCursor = { epoch: string; number: number };

/** Incidents of sandboxes, and where to ask for what follows. */
export type IncidentsPage = { incidents: SandboxIncident[]; next: IncidentsCursor };

/** Why a sandbox is ended: somebody asked for it, or its time is over. */
export type EndReason = 'asked' | 'timed_out';

/** What kept memory depends on: a machine that differs in one of these can't restore it. */
export type MemoryFacts = {
  /** As the kernel calls it, e.g. `x86_64`. */
  architecture: string;
  /** Release of the kernel. */
  kernel: string;
  /** Version of CRIU; null: there is none. */
  criu: string | null;
  /** Abilities of the processors, in the kernel's words. */
  cpuFlags: string[];
  /** Digest of the agent that new sandboxes start with; for a paused sandbox, of its own agent. */
  agent: string;
};

/** Facts of a node that rarely change. */
export type NodeInfo = {
  nodeId: string;
  cpuCount: number;
  memoryBytes: number;
  sandboxCount: number;
  sandboxesMax: number;
  /** Driver of sandboxes whose template names none. */
  driver: DriverName;
  /** Ability of the default driver. */
  memory: MemoryAbility;
  /** Ability of each driver of the node. */
  memoryByDriver: Partial<Record<DriverName, MemoryAbility>>;
  /** The machine, by /proc/cpuinfo. */
  machine?: { cpuFamily: string; cpuModel: string; cpuModelName: string; cpuArchitecture: string };
  /** What memory from other machines must fit. Absent: this node takes none. */
  restores?: MemoryFacts;
  /** Digests of earlier builds of the agent whose memory this node resumes as well. Absent: none. */
  earlierAgents?: string[];
  /** Labels that the operator gives the machine (`ATOLL_NODE_LABELS`). */
  labels?: Record<string, string>;
  /** How often its CPUs may be promised to sandboxes (`ATOLL_CPU_OVERCOMMIT`). Absent: control's rule applies. */
  cpuOvercommit?: number;
};

/** Sandboxes of one node. `src/protocol/wire/node-table.ts` has the same methods as a table with schemas. */
export type NodeProtocol = {
  info(): Promise<NodeInfo>;

  usage(): Promise<NodeUsage>;

  /**
   * Starts a sandbox and answers when its agent has taken its settings and accepts requests. Another call with the same
   * execution ID answers the same sandbox. A failed create leaves nothing behind. Errors: `not_found` (a layer or
   * volume is missing), `invalid` (a volume can't be mounted there), `unavailable` (no slot or no disk left),
   * `internal`.
   */
  create(request: CreateSandbox, signal?: AbortSignal): Promise<NodeSandbox>;

  /**
   * Ends a sandbox, running or paused, and answers when none of its processes is left. Waits for a create, pause or
   * resume of the same execution that is under way. Unknown sandboxes and other executions answer at once: the wanted
   * state holds already. `reason` (default `asked`) goes into its log.
   */
  kill(target: ExecutionRef, reason?: EndReason): Promise<void>;

  /**
   * Makes sure that an execution which somebody has requested, or is about to, does not begin on the node any more: its
   * create or resume is answered `conflict`, even after a restart of the node. Waits for what is under way, and answers
   * false where the execution has begun. Whoever settles what another process left half done calls this first.
   */
  withdraw(target: ExecutionRef): Promise<boolean>;

  /** Every sandbox that runs on the node and whose create or resume was answered, adopted ones included. */
  list(): Promise<NodeSandbox[]>;

  /**
   * Pauses a sandbox and answers when its state survives a crash of the platform and of the host. A failed pause leaves
   * it running. Another call for the same execution answers the same. Errors: `not_found`, `precondition` (its memory
   * can't be kept, with the reason), `no_space`, `internal`; `unavailable` where the agent is required and does not
   * answer.
   */
  pause(target: ExecutionRef, options: PauseOptions): Promise<PausedSandbox>;

  /**
   * Resumes a paused sandbox as another execution, and answers when its agent accepts requests. A failed resume leaves
   * it paused. Another call with the same next execution answers the same sandbox. Errors: `not_found`, `unavailable`
   * (no slot, memory or disk left), `internal` (also for a damaged state), `conflict` (its memory needs something in
   * its volumes that others have changed).
   */
  resume(request: ResumeSandbox): Promise<ResumedSandbox>;

  /**
   * Says whether the memory of a running sandbox can be kept and, if not, why. For a sandbox that is not here, answers
   * the node's ability.
   */
  memoryAbility(target: ExecutionRef): Promise<MemoryAbility>;

  /** Every paused sandbox on the node that is not set aside. */
  listPaused(): Promise<PausedSandbox[]>;

  /**
   * Sets aside a sandbox that the store does not know: stops it and keeps its files (and the memory of a paused one). A
   * sandbox that can't be stopped now runs on. Unknown sandboxes and other executions answer at once. Errors:
   * `no_space`, `internal`.
   */
  setAside(target: ExecutionRef, reason: string): Promise<void>;

  /** Every sandbox that is set aside. */
  listSetAside(): Promise<SetAsideSandbox[]>;

  /** Makes a sandbox that was set aside a paused one like any other. Errors: `not_found`. */
  takeBack(target: ExecutionRef): Promise<PausedSandbox>;

  /** Removes a sandbox that was set aside, with all that it has kept. Errors: `not_found`. */
  removeSetAside(sandboxId: string): Promise<void>;

  /**
   * Keeps the present state of a running sandbox, for others to start from; the sandbox stands still briefly and runs
   * on. The layers stay until they are collected; so does the snapshot of that ID, where memory was kept, until it is
   * deleted. Errors: `not_found`, `precondition` (its memory can't be kept, with the reason), `no_space`, `internal`.
   */
  snapshot(request: TakeSnapshot): Promise<Snapshot>;

  /** Deletes the memory of a snapshot. Succeeds where there is none. */
  deleteSnapshot(snapshotId: string): Promise<void>;

  /** The snapshots with memory on the node, and when they were taken. */
  listSnapshots(): Promise<{ snapshotId: string; takenAtMs: number }[]>;

  /**
   * Incidents of sandboxes after `after`, in order; null: all that nobody has handled. An end is reported after the
   * sandbox was cleaned up. Answers when there is one, at the latest after `waitMs`. By passing a cursor the caller
   * says that it has handled everything before it, and the node forgets that. A cursor of another process of the node
   * counts as null.
   */
  incidents(after: IncidentsCursor | null, waitMs: number, signal?: AbortSignal): Promise<IncidentsPage>;

  /**
   * A connected stream socket to `port` inside the sandbox, as a file descriptor that the caller now owns. It also
   * reaches services that listen only on the sandbox's loopback (IPv4 or IPv6). Errors: `not_found` for a sandbox that
   * is not here, `unavailable` where nothing listens on the port, and `rate_limited` where too many connections to the
   * sandbox, or to those of its team, wait to be accepted.
   */
  dial(sandboxId: string, port: number, signal?: AbortSignal): Promise<number>;

  /**
   * Replaces the network policy of a sandbox. When it resolves, the new policy holds for every connection, and existing
   * ones that it denies are cut. Errors: `not_found` when this execution does not run here.
   */
  updateNetwork(target: ExecutionRef, network: SandboxNetwork): Promise<void>;

  /**
   * Log entries of a sandbox that is or was on the node, as far as they are still kept; none for an unknown sandbox.
   */
  logs(request: ReadSandboxLogs): Promise<SandboxLogEntry[]>;

  /** Counters of the sandbox's network. Errors: `not_found` when this execution does not run here. */
  traffic(target: ExecutionRef): Promise<TrafficCounters>;

  volumes: VolumeProtocol;

  /**
   * Use of a sandbox over all its executions, oldest first; empty for one that the node does not know (any more). More
   * than `pointsMax` samples are merged: the mean of the CPU, the maximum of memory and disk.
   */
  samples(sandboxId: string, range: SampleRange): Promise<SandboxSample[]>;

  /** The latest sample of each of the sandboxes, by ID; those without are left out. */
  latestSamples(sandboxIds: string[]): Promise<Record<string, SandboxSample>>;
};
