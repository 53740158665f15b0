import { join } from 'node:path';
import type { NodeBuildProtocol } from '../../protocol/build.ts';
import type { EgressPolicy } from '../../protocol/network/network.ts';
import type { Log } from '../../base/telemetry/log.ts';
import type { CheckpointSupport } from '../sandbox/keep/checkpoint-support.ts';
import type { CollectParts } from './cache/collect.ts';
import { openBuildSandbox, type BuildSandboxParts } from './sandbox/build-sandbox.ts';
import { createStartedSandboxes } from './start/start-memory.ts';
import { layerLimits } from '../layers/limits.ts';
import { readAuthorities } from './authorities.ts';
import { cachedFilesOf } from './cache/cached-files.ts';
import type { ByteBounds } from './build-bytes.ts';
import { createBuilds } from './builds.ts';
import { createDevContainers } from './docker/dev-container.ts';
import { clearScratch } from './scratch.ts';
import { createSource } from './source.ts';
import { createStepCache } from './cache/step-cache.ts';
import { uploadedFilesIn } from './cache/uploaded-files.ts';

/** What an operator may set for builds. */
export type BuildSettings = {
  /** Where the api puts uploaded files. */
  filesDir: string;
  /** What the operator says about images; see image/settings.ts. May be missing. */
  imagesFile?: string;
  /**
   * Authorities that build sandboxes trust beside their image's own: a PEM file, or a folder of them. May be missing.
   */
  authorities?: string;
  /**
   * Disk for cached things that no template needs: layers of steps, cache mounts, uploaded files; bytes. Default 20
   * GiB.
   */
  cacheBytesMax?: number;
  /**
   * Disk for layers, in a cluster with a store: beyond it, layers that the store also has are deleted, the least
   * recently used first. Bytes. Default 100 GiB.
   */
  layerBytesMax?: number;
  /** What the commands of steps can reach. Default: the internet. */
  network?: EgressPolicy;
  /** How much builds may write. Default: 40 GiB each, and 100 GiB for a team within a day. */
  byteBounds?: ByteBounds;
  /** Builds at a time. Default 20. */
  concurrentMax?: number;
  /** Longest time of one build. Default 1 h. */
  timeoutMs?: number;
};

const defaults = {
  cacheBytesMax: 20 * 2 ** 30,
  layerBytesMax: 100 * 2 ** 30,
  concurrentMax: 20,
  timeoutMs: 60 * 60_000,
};
const defaultByteBounds = { perBuild: 40 * 2 ** 30, perTeam: 100 * 2 ** 30, windowMs: 24 * 60 * 60_000 };

/** The parts of a node that its builds need. */
type BuildsParts = BuildSandboxParts & CollectParts & { log: Log; checkpoints: CheckpointSupport };

/** Makes the builds of a node, with everything that they need. */
export function composeBuilds(
  parts: BuildsParts,
  settings: BuildSettings,
): NodeBuildProtocol & { stop(): Promise<void> } {
  const { builder, disks, helper, layers, layout, log, sandboxes, space } = parts;
  const images = { settingsFile: settings.imagesFile ?? '', scratchDir: clearScratch(layout) };
  return createBuilds({
    node: {
      ...{ builder, disks, helper, layers, layout, sandboxes, space },
      nodeLog: log,
      openSandbox: options => openBuildSandbox(parts, options),
      started: createStartedSandboxes(parts),
    },
    limits: layerLimits,
    byteBounds: settings.byteBounds ?? defaultByteBounds,
    cache: createStepCache(join(layout.data, 'build-cache'), digest => layers.has(digest)),
    files: uploadedFilesIn(settings.filesDir),
    authorities: settings.authorities === undefined ? undefined : readAuthorities(settings.authorities),
    network: settings.network ?? { internetAccess: true },
    parts: { resolveSource: createSource(images), becomeDevContainer: createDevContainers(images) },
    cachedFiles: () => cachedFilesOf(layout, settings.filesDir),
    cacheBytesMax: settings.cacheBytesMax ?? defaults.cacheBytesMax,
    layerBytesMax: settings.layerBytesMax ?? defaults.layerBytesMax,
    concurrentMax: settings.concurrentMax ?? defaults.concurrentMax,
    buildTimeoutMs: settings.timeoutMs ?? defaults.timeoutMs,
  });
}
