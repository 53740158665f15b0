import type { EgressPolicy } from './network.ts';

/**
 * The node protocol: the only way from the api and the edge to a machine that hosts sandboxes.
 * Every message is plain JSON, so that the same calls work in one process and over a connection.
 * Every command to a sandbox names its execution id: a late command can't hit a successor.
 */

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
};

export type ExecutionRef = { sandboxId: string; executionId: string };

export type NodeSandbox = ExecutionRef & {
  /** Epoch milliseconds at which the agent was ready. */
  startedAtMs: number;
  resources: SandboxResources;
};

/** What a sandbox sent and got over the network by itself. Connections that clients make into it are not in it. */
export type TrafficCounters = {
  bytesOut: number;
  bytesIn: number;
  /** Packets and connections that its policy refused. */
  denied: number;
};

/** Why a sandbox ended without being told to. */
export type SandboxExit = ExecutionRef & { reason: 'init_exited' | 'out_of_memory' };

export type NodeInfo = {
  nodeId: string;
  cpuCount: number;
  memoryBytes: number;
  sandboxCount: number;
  sandboxesMax: number;
  driver: string;
  /** What the machine is, as /proc/cpuinfo has it. */
  machine?: { cpuFamily: string; cpuModel: string; cpuModelName: string; cpuArchitecture: string };
  /** What the machine uses now, all its processes included. */
  usage?: {
    /** 0 to 100, over all CPUs. */
    cpuPercent: number;
    memoryUsedBytes: number;
    disks: Array<{ mountPoint: string; device: string; filesystemType: string; usedBytes: number; totalBytes: number }>;
  };
};

export type NodeProtocol = {
  info(): Promise<NodeInfo>;

  /**
   * Starts a sandbox and answers when its agent has taken its settings and accepts requests.
   * Asking again with the same execution id answers the same sandbox. A failed create leaves nothing.
   * Errors: `not_found` (a layer is missing), `unavailable` (no slot or no disk left), `internal`.
   */
  create(request: CreateSandbox, signal?: AbortSignal): Promise<NodeSandbox>;

  /**
   * Ends a sandbox and answers when no process, mount, namespace, interface, cgroup or file of it is left.
   * Unknown sandboxes and other executions answer at once: the wanted state holds.
   */
  kill(target: ExecutionRef): Promise<void>;

  /** Every sandbox on the node whose create was answered, adopted ones included. */
  list(): Promise<NodeSandbox[]>;

  /** Calls `listener` for each sandbox that ends by itself, after it was cleaned up. Returns the way to stop listening. */
  onExit(listener: (exit: SandboxExit) => void): () => void;

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

  /** Counters of the sandbox's network. Errors: `not_found` when this execution does not run here. */
  traffic(target: ExecutionRef): Promise<TrafficCounters>;
};
