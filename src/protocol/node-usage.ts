import type { ProcessRestarts } from '../base/telemetry/process-restarts.ts';

/** Bytes that a sandbox sent and received by itself. Clients' connections into it do not count. */
export type TrafficCounters = {
  bytesOut: number;
  bytesIn: number;
  /** Packets and connections that its policy refused. */
  denied: number;
};

/** Use of a sandbox at one moment or, in a long range, during a span of time. Bytes. */
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

/** A range of samples: both ends are inclusive, epoch seconds. */
export type SampleRange = { startSeconds: number; endSeconds: number; pointsMax: number };

/** Use of a machine now, all its processes included, and counters of its node since it started. */
export type NodeUsage = {
  /** 0 to 100, over all CPUs. */
  cpuPercent: number;
  memoryUsedBytes: number;
  hugePages: { total: number; used: number; reserved: number; pageSizeBytes: number };
  disks: DiskUsage[];
  /** The room on the file system that holds everything of the node. */
  space: SpaceUsage;
  /** Absent where no standby sandboxes are kept. */
  pool?: PoolCounts;
  /** Sum over all sandboxes. The last bytes of one that ended by itself may be missing. */
  traffic: TrafficCounters;
  /** Set by the gate of a machine in a cluster: on one machine alone, who starts the api counts them. */
  restarts?: ProcessRestarts[];
};

/** Room on the file system of the data directory. */
export type SpaceUsage = {
  freeBytes: number;
  /** Bytes that disks have promised and the file system has not given yet. */
  owedBytes: number;
  /** Bytes for the platform alone. */
  reserveBytes: number;
  /** Running sandboxes can't write to new blocks. */
  held: boolean;
  /** Disks of sandboxes and volumes whose file system has given up. */
  failedDisks: number;
};

/** Use of one file system. */
export type DiskUsage = {
  mountPoint: string;
  device: string;
  filesystemType: string;
  usedBytes: number;
  totalBytes: number;
};

/** The pool: standby sandboxes that wait, how many were asked for (`hits`, `misses`), and how starts for it went. */
export type PoolCounts = {
  size: number;
  ready: number;
  hits: number;
  misses: number;
  refills: number;
  failures: number;
  /** The same of those that were restored; absent where none are. */
  restored?: RestoredCounts;
};

/** As `PoolCounts`; how many are to wait depends on what is asked for. */
export type RestoredCounts = Omit<PoolCounts, 'size' | 'restored'>;
