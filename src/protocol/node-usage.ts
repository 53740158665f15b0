import type { ProcessRestarts } from '../base/telemetry/process-restarts.ts';

/** Bytes that a sandbox itself sent and received. Clients' connections into it do not count. */
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
  /** Without files that the kernel caches and gives up when memory is short: those are `memCache`. */
  memUsed: number;
  memTotal: number;
  memCache: number;
  diskUsed: number;
  diskTotal: number;
};

/** A range of samples, in epoch seconds; both ends are inclusive. */
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
  /**
   * The gate of a machine in a cluster sets it. On a single machine, the process that starts the api counts restarts.
   */
  restarts?: ProcessRestarts[];
};

/** Room on the file system of the data directory. */
export type SpaceUsage = {
  freeBytes: number;
  /** Bytes promised to disks that the file system has not allocated yet. */
  owedBytes: number;
  /** Bytes reserved for the platform. */
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

/**
 * The pool: how many standby sandboxes wait, how many requests found one (`hits`) or not (`misses`), and how the starts
 * for it went.
 */
export type PoolCounts = {
  size: number;
  ready: number;
  hits: number;
  misses: number;
  refills: number;
  failures: number;
  /** The same counts of restored ones; absent where none are restored. */
  restored?: RestoredCounts;
};

/** As in `PoolCounts`; how many should wait depends on demand. */
export type RestoredCounts = Omit<PoolCounts, 'size' | 'restored'>;
