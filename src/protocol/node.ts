import type { ReadSandboxLogs, SandboxLogEntry } from './logs.ts';
import type { EgressPolicy } from './network.ts';
import type { SandboxVolume, VolumeProtocol } from './volume.ts';

/**
 * The node protocol: the only way from the api and the edge to a machine that hosts sandboxes.
 * Every message is plain JSON, so that the same calls work in one process and over a connection.
 * Every command to a sandbox names its execution id: a late command can't hit a successor.
 */

/**
 * How a sandbox is isolated: by namespaces, control groups and seccomp of the host's kernel (crun), or by a kernel of its
 * own in user space (gVisor).
 */
export type DriverName = 'crun' | 'gvisor';

/** A template as a node needs it: layers, and how a sandbox made from it starts. */
export type TemplateImage = {
  templateId: string;
  buildId: string;
  /** Layer digests (`sha256:<hex>`), lowest first. */
  layers: string[];
  defaultUser: string;
  /** Empty: the user's home directory. */
  defaultWorkdir: string;
  startCommand?: string;
  readyCommand?: string;
  /** Environment of the start and ready commands only; never exported into processes that clients start. */
  buildEnv: Record<string, string>;
  /** The snapshot whose memory a sandbox begins with: the processes that ran then go on. Absent: it boots. */
  memorySnapshotId?: string;
  /** What the start command has made of `layers`, where a build has kept that. A sandbox that can begin with it does not boot. */
  started?: StartedImage;
  /** Absent: the node's default. */
  driver?: DriverName;
};

/** A sandbox with its start command running and ready, as a snapshot. */
export type StartedImage = {
  snapshotId: string;
  /** In place of the image's. */
  layers: string[];
  /** Those of the sandbox that it was taken of: programs look at them when they start. */
  resources: SandboxResources;
};

export type SandboxResources = {
  cpuCount: number;
  memoryMiB: number;
  /** What the sandbox may write beyond its template, MiB. */
  diskMiB: number;
};

/** What may leave the sandbox. */
export type SandboxNetwork = EgressPolicy;

export type CreateSandbox = {
  sandboxId: string;
  /** One incarnation of the sandbox (UUID). */
  executionId: string;
  image: TemplateImage;
  resources: SandboxResources;
  network: SandboxNetwork;
  /** The sandbox's global environment, the platform's own variables included. */
  envVars: Record<string, string>;
  /** Required from clients of the agent, or null for an unsecured sandbox. */
  accessToken: string | null;
  /** What it has mounted until its end, however often it is paused. Absent: nothing. */
  volumes?: SandboxVolume[];
};

export type ExecutionRef = { sandboxId: string; executionId: string };

export type NodeSandbox = ExecutionRef & {
  /** Epoch milliseconds at which the agent was ready. */
  startedAtMs: number;
  resources: SandboxResources;
};

/** What a paused sandbox or a snapshot has kept: everything, or its files alone. */
export type Kept = 'memory' | 'filesystem';

export type PausedSandbox = ExecutionRef & { kept: Kept; pausedAtMs: number };

/**
 * A sandbox that nobody answers for: the store did not know it, or its node can't read what it has noted of it. It does not run
 * (but see `reason`), and all that it has kept stays until an operator decides.
 */
export type SetAsideSandbox = {
  sandboxId: string;
  /** What the node knows of it; null where its record can't be read: then it can be removed and nothing else. */
  known: {
    executionId: string;
    kept: Kept;
    image: Pick<TemplateImage, 'templateId' | 'buildId'>;
    resources: SandboxResources;
    volumes: SandboxVolume[];
    startedAtMs: number;
  } | null;
  sinceMs: number;
  /** Why, for the operator. */
  reason: string;
};

/** The reference names the execution that was paused. */
export type ResumeSandbox = ExecutionRef & {
  /** The incarnation that begins (UUID). */
  nextExecutionId: string;
  /** False: it boots from its files, even where its memory was kept. */
  memory: boolean;
  network: SandboxNetwork;
  /** What the agent is told again, as in `CreateSandbox`. */
  envVars: Record<string, string>;
  accessToken: string | null;
};

export type ResumedSandbox = NodeSandbox & {
  /** With its memory as it was, or booted from its files. */
  from: Kept;
};

export type TakeSnapshot = ExecutionRef & {
  /** Names the snapshot's memory on the node (UUID). */
  snapshotId: string;
  /** False: the files alone, whatever the node can do. */
  memory: boolean;
};

export type Snapshot = {
  /** Layer digests, lowest first: the sandbox's own, and what it has written on top. */
  layers: string[];
  kept: Kept;
  /** What isolated the sandbox. */
  driver: DriverName;
};

/** Whether a node can keep the memory of a sandbox, and if not, why. */
export type MemoryAbility = { kept: true } | { kept: false; reason: string };

/** What a sandbox sent and got over the network by itself. Connections that clients make into it are not in it. */
export type TrafficCounters = {
  bytesOut: number;
  bytesIn: number;
  /** Packets and connections that its policy refused. */
  denied: number;
};

/** What a sandbox used at one moment; of a long range, of a span of time. Bytes. */
export type SandboxSample = {
  /** Epoch seconds. */
  atSeconds: number;
  cpuCount: number;
  /** 0 to 100, over all CPUs of the sandbox, since the sample before. */
  cpuUsedPct: number;
  /** Without files that the kernel keeps in memory and gives up when it is short of it: those are `memCache`. */
  memUsed: number;
  memTotal: number;
  memCache: number;
  diskUsed: number;
  diskTotal: number;
};

/** Which samples are asked for: both ends are inclusive, epoch seconds. */
export type SampleRange = { startSeconds: number; endSeconds: number; pointsMax: number };

/** Why a sandbox ended without being told to. */
export type SandboxExit = ExecutionRef & { reason: 'init_exited' | 'out_of_memory' };

/** How far somebody has read the ends of sandboxes: numbers are counted anew by each process of the node. */
export type ExitsPlace = { epoch: string; number: number };

/** Ends of sandboxes, and where to ask for what follows. */
export type ExitsPage = { exits: SandboxExit[]; next: ExitsPlace };

/** Why a sandbox is ended: somebody wants it, or its time is over. */
export type EndReason = 'asked' | 'timed_out';

export type NodeInfo = {
  nodeId: string;
  cpuCount: number;
  memoryBytes: number;
  sandboxCount: number;
  sandboxesMax: number;
  /** Of sandboxes whose template asks for none. */
  driver: DriverName;
  /** What can be kept of the sandboxes of the default driver. */
  memory: MemoryAbility;
  /** The same for each driver that the node has. */
  memoryByDriver: Partial<Record<DriverName, MemoryAbility>>;
  /** What the machine is, as /proc/cpuinfo has it. */
  machine?: { cpuFamily: string; cpuModel: string; cpuModelName: string; cpuArchitecture: string };
};

/** What a machine uses now, all its processes included, and what its node has counted since it started. */
export type NodeUsage = {
  /** 0 to 100, over all CPUs. */
  cpuPercent: number;
  memoryUsedBytes: number;
  hugePages: { total: number; used: number; reserved: number; pageSizeBytes: number };
  disks: DiskUsage[];
  /** The room on the file system that holds everything of the node. */
  space: SpaceUsage;
  /** Absent where no blank sandboxes are kept. */
  pool?: PoolCounts;
  /** Of all sandboxes. Of one that ended by itself, the last may be missing. */
  traffic: TrafficCounters;
};

export type SpaceUsage = {
  freeBytes: number;
  /** What disks have promised to those who write to them, and the file system has not given yet. */
  owedBytes: number;
  /** What nobody but the platform itself may take. */
  reserveBytes: number;
  /** Running sandboxes can't write anything new. */
  held: boolean;
  /** Disks of sandboxes and volumes whose file system has given up. */
  failedDisks: number;
};

export type DiskUsage = { mountPoint: string; device: string; filesystemType: string; usedBytes: number; totalBytes: number };

/** The blank sandboxes that wait to be claimed, and how claims (`hits`, `misses`) and starts of blanks went. */
export type PoolCounts = { size: number; ready: number; hits: number; misses: number; refills: number; failures: number };

export type NodeProtocol = {
  info(): Promise<NodeInfo>;

  usage(): Promise<NodeUsage>;

  /**
   * Starts a sandbox and answers when its agent has taken its settings and accepts requests.
   * Asking again with the same execution id answers the same sandbox. A failed create leaves nothing.
   * Errors: `not_found` (a layer or volume is missing), `invalid` (a volume can't be mounted there), `unavailable` (no slot or no disk left), `internal`.
   */
  create(request: CreateSandbox, signal?: AbortSignal): Promise<NodeSandbox>;

  /**
   * Ends a sandbox, running or paused, and answers when no process, mount, namespace, interface, cgroup or file of it is left.
   * A create, pause or resume of the same execution that is under way is waited for.
   * Unknown sandboxes and other executions answer at once: the wanted state holds. `reason` (default `asked`) is for its log.
   */
  kill(target: ExecutionRef, reason?: EndReason): Promise<void>;

  /** Every sandbox that runs on the node and whose create or resume was answered, adopted ones included. */
  list(): Promise<NodeSandbox[]>;

  /**
   * Pauses a sandbox and answers when its state survives a crash of the platform and of the host. A failed pause leaves it
   * running. Asking again for the same execution answers the same.
   * Errors: `not_found`, `precondition` (its memory can't be kept, with the reason), `no_space`, `internal`.
   */
  pause(target: ExecutionRef, options: { memory: boolean }): Promise<PausedSandbox>;

  /**
   * Lets a paused sandbox run again, as another execution, and answers when its agent accepts requests. A failed resume
   * leaves it paused. Asking again with the same next execution answers the same sandbox.
   * Errors: `not_found`, `unavailable` (no slot, memory or disk left), `internal` (also for a state that is damaged).
   */
  resume(request: ResumeSandbox): Promise<ResumedSandbox>;

  /** Whether the memory of a running sandbox can be kept, and if not, why. Of one that is not here: what its node can do. */
  memoryAbility(target: ExecutionRef): Promise<MemoryAbility>;

  /** Every paused sandbox on the node that is not set aside. */
  listPaused(): Promise<PausedSandbox[]>;

  /**
   * Sets a sandbox aside that the store does not know: it is stopped, and its files (of a paused one, also its memory) are kept. One that
   * can't be stopped now runs on. Unknown sandboxes and other executions answer at once. Errors: `no_space`, `internal`.
   */
  setAside(target: ExecutionRef, reason: string): Promise<void>;

  /** Every sandbox that is set aside. */
  listSetAside(): Promise<SetAsideSandbox[]>;

  /** Makes a sandbox that was set aside a paused one like any other. Errors: `not_found`. */
  takeBack(target: ExecutionRef): Promise<PausedSandbox>;

  /** Removes a sandbox that was set aside, with all that it has kept. Errors: `not_found`. */
  removeSetAside(sandboxId: string): Promise<void>;

  /**
   * Keeps what a running sandbox is at this moment, for others to begin with; it stands still shortly and runs on. The
   * layers, and where memory was kept the snapshot of that ID, stay until they are collected or deleted.
   * Errors: `not_found`, `precondition` (its memory can't be kept, with the reason), `no_space`, `internal`.
   */
  snapshot(request: TakeSnapshot): Promise<Snapshot>;

  /** Deletes the memory of a snapshot. One that is not here is gone already. */
  deleteSnapshot(snapshotId: string): Promise<void>;

  /** The snapshots with memory on the node, and when they were taken. */
  listSnapshots(): Promise<{ snapshotId: string; takenAtMs: number }[]>;

  /**
   * The sandboxes that ended by themselves, each after it was cleaned up, in their order from `after` on; null: all that nobody
   * has asked beyond. Answers when there is one, at the latest after `waitMs`. To ask with a place says that everything before it
   * was taken care of, and the node forgets it. A place of another process of the node counts as null.
   */
  exits(after: ExitsPlace | null, waitMs: number, signal?: AbortSignal): Promise<ExitsPage>;

  /**
   * A connected stream socket to `port` inside the sandbox, as a file descriptor that the caller now owns;
   * services that listen only on the sandbox's loopback (IPv4 or IPv6) are reached too.
   * Answers `not_found` for a sandbox that is not here and `unavailable` where nothing listens on the port.
   */
  dial(sandboxId: string, port: number, signal?: AbortSignal): Promise<number>;

  /**
   * Replaces what may leave a sandbox. When it resolves, the new policy holds for every connection, and existing ones to
   * what is now denied are cut. Errors: `not_found` when this execution does not run here.
   */
  updateNetwork(target: ExecutionRef, network: SandboxNetwork): Promise<void>;

  /**
   * What happened in and with a sandbox that is or was on the node, as far as it is still kept. None is known of: no entries.
   */
  logs(request: ReadSandboxLogs): Promise<SandboxLogEntry[]>;

  /** Counters of the sandbox's network. Errors: `not_found` when this execution does not run here. */
  traffic(target: ExecutionRef): Promise<TrafficCounters>;

  volumes: VolumeProtocol;

  /**
   * What a sandbox has used, oldest first, over all its executions; nothing for one that the node does not know (any more).
   * More than `pointsMax` samples are put together: the mean of the CPU, the highest of memory and disk.
   */
  samples(sandboxId: string, range: SampleRange): Promise<SandboxSample[]>;

  /** The latest sample of each of the sandboxes, by ID; those without are left out. */
  latestSamples(sandboxIds: string[]): Promise<Record<string, SandboxSample>>;
};
