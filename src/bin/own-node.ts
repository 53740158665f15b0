import { filesDirOf } from '../api/installation/data-directory.ts';
import { existsSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { AtollError, messageOf } from '../base/error.ts';
import type { Log } from '../base/telemetry/log.ts';
import type { Installation } from '../node/installation.ts';
import type { EgressSettings } from '../node/network/egress/settings.ts';
import type { Node, NodeOptions } from '../node/start/options.ts';
import { startNode } from '../node/start/start.ts';
import { defaultSize } from '../protocol/default-size.ts';
import type { ExecutionRef } from '../protocol/node.ts';
import { readIfThere } from '../base/small-file.ts';
import type { Programs } from './platform/programs.ts';
import { builtPrograms, criuDir, runscDir } from './repository.ts';
import { poolSizeFor } from './settings/pool-size.ts';
import { isWildcard, type Settings } from './settings/settings.ts';
import { advice } from '../base/process/set-up.ts';

/** Settings and callbacks of the node of this installation. */
type OwnNodeOptions = {
  settings: Settings;
  log: Log;
  nodeId: string;
  /** Standby sandboxes; undefined: a number that suits the machine. */
  poolSize: number | undefined;
  onLost: (error: Error) => void;
  /** The platform's kept copies of the helper, the agent and the builder; absent: as set-up has built them. */
  programs?: Programs;
  /** The claim on the data directory; absent: the node claims it. */
  installation?: Installation;
  /** As in `NodeOptions`. */
  requireLease?: () => void;
};

/** Starts the node of this installation in this process, which must run as root. */
export async function startOwnNode(options: OwnNodeOptions): Promise<Node> {
  const { settings, log, nodeId, poolSize, onLost } = options;
  for (const path of Object.values(builtPrograms)) {
    if (!existsSync(path)) throw new AtollError('unavailable', `${path} is missing: ${advice.setUp}.`);
  }
  const nodeOptions: NodeOptions = {
    nodeId,
    dataDir: settings.dataDir,
    ...builtPrograms,
    ...options.programs,
    nameservers: settings.nameservers,
    egress: egressOf(settings),
    // Standby sandboxes have the size that most creates ask for; claiming one for another size changes it.
    pool: { ...poolSizeFor(poolSize, totalmem()), resources: defaultSize },
    builds: {
      filesDir: filesDirOf(settings.dataDir),
      imagesFile: join(settings.dataDir, 'images.json'),
      authorities: settings.buildAuthorities,
      cacheBytesMax: settings.buildCacheGiB * 2 ** 30,
      layerBytesMax: settings.layersGiB * 2 ** 30,
      network: settings.buildNetwork,
    },
    diskReserveBytes: settings.diskReserveMiB * 1024 ** 2,
    diskWriteBytesPerSecond: settings.diskWriteMiB * 1024 ** 2,
    criuDir,
    runscDir,
    driver: settings.driver,
    frozenMs: settings.frozenSeconds * 1000,
    metricsHours: settings.metricsHours,
    logs: { bytesMax: settings.sandboxLogsMiB * 1024 ** 2, output: settings.sandboxLogOutput },
    ...(options.requireLease && { requireLease: options.requireLease }),
    log,
    onHelperLost: () =>
      onLost(
        new AtollError(
          'internal',
          'The native helper has ended. The node is started again: its sandboxes run on and are taken over.',
        ),
      ),
  };
  return startNode(nodeOptions, options.installation);
}

function egressOf({ domain, host, port, tlsPort, sandboxBandwidthMbit, egressOpenTls }: Settings): EgressSettings {
  // In a sandbox, `localhost` means the sandbox itself, and a port that is not known yet can't be given to it.
  const isReachable = domain !== 'localhost' && !domain.endsWith('.localhost') && port !== 0;
  const address = isWildcard(host) ? '127.0.0.1' : host;
  return {
    opensAllowedNames: egressOpenTls,
    ...(sandboxBandwidthMbit !== undefined && { bandwidthBytesPerSecond: sandboxBandwidthMbit * 125_000 }),
    ...(isReachable && { platform: { domain, address, httpPort: port, ...(tlsPort !== undefined && { tlsPort }) } }),
  };
}

/**
 * Ends the running sandboxes of the data directory, with `all` also the paused and set-aside ones, and removes
 * everything of the installation from the host except the data. Answers which sandboxes ended.
 */
export async function endSandboxes(
  { settings, log }: { settings: Settings; log: Log },
  { all }: { all: boolean },
): Promise<ExecutionRef[]> {
  const nodeId = readIfThere(join(settings.dataDir, 'node-id')) ?? '';
  const node = await startOwnNode({ settings, log: log.with({ part: 'node' }), nodeId, poolSize: 0, onLost: () => {} });
  try {
    return await node.down({ all });
  } catch (error) {
    throw new AtollError(
      'unavailable',
      `Not everything could be removed: ${messageOf(error)}. What is named is still there; run it again.`,
      { cause: error },
    );
  }
}
