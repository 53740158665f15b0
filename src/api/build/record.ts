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
  /** Of a snapshot that has kept memory: the ID by which nodes know it. */
  memorySnapshotId?: string;
  /** The node that has this memory. */
  memoryNodeId?: string;
  /** Of a template with a start command whose memory was kept when it was ready. */
  started?: StartedImage;
  /** Of a snapshot: the volumes that its sandbox had. */
  volumeMounts?: MountedVolume[];
  /** Of a snapshot whose source had to be isolated so. */
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

/** What a deprecated route was given with a build, for the moment when it is started. */
export type BuildRequest = { dockerfile: string; startCmd?: string; readyCmd?: string };

/** A build with why it failed and what it was asked for. */
export type BuildDetail = BuildRecord & { reason: BuildReason | null; request: BuildRequest | null };
