import type { BuildStatus } from '../../protocol/api/template.ts';
import type { StartedImage } from '../../protocol/node.ts';
import type { DriverName } from '../../protocol/driver.ts';
import type { MountedVolume } from '../sandbox/record.ts';

/** How sandboxes made from a build start. */
export type BuildConfig = {
  defaultUser: string;
  /** Empty: the user's home directory. */
  defaultWorkdir: string;
  startCommand?: string;
  readyCommand?: string;
  /** Environment of the start and ready commands only. */
  buildEnv: Record<string, string>;
  /** ID by which nodes know the memory of a snapshot; only where memory was kept. */
  memorySnapshotId?: string;
  /** The node that has this memory. */
  memoryNodeId?: string;
  /** Memory with the started program, kept when that was ready; only for templates with a start command. */
  started?: StartedImage;
  /** Volumes of the sandbox that a snapshot was taken of. */
  volumeMounts?: MountedVolume[];
  /** Driver that a snapshot needs, because its source had it. */
  driver?: DriverName;
};

/** A build of a template, as the platform knows it. */
export type BuildRecord = {
  buildId: string;
  templateId: string;
  status: BuildStatus;
  cpuCount: number;
  memoryMiB: number;
  diskMiB: number;
  agentVersion: string | null;
  layers: string[];
  config: BuildConfig;
  createdAtUs: number;
  updatedAtUs: number;
  finishedAtUs: number | null;
};

/** Why a build failed, and where: `base`, `finalize`, or the number of a step. */
export type BuildReason = { message: string; step?: string };

/** What a deprecated route was given with a build, kept until the build starts. */
export type BuildRequest = { dockerfile: string; startCmd?: string; readyCmd?: string };

/** A build with the reason of its failure and what was requested. */
export type BuildDetail = BuildRecord & { reason: BuildReason | null; request: BuildRequest | null };
