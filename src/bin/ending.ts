import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { apiKeyFile } from '../api/installation/data-directory.ts';
import { factsFile } from '../api/installation/facts.ts';
import { placeOf } from '../api/installation/place.ts';
import { AtollError, messageOf } from '../base/error.ts';
import { readIfThere } from '../base/small-file.ts';
import { createLog } from '../base/telemetry/log.ts';
import type { OwnInstallation } from '../cli/operator/down.ts';
import { isInUse } from '../node/installation.ts';
import type { ExecutionRef } from '../protocol/node.ts';
import { readMachineIdentity } from './cluster/join.ts';
import { announceDown, endInstance } from './platform/instance.ts';
import type { Settings } from './settings/settings.ts';

/** How long the platform's processes may take to end once their supervisor is gone, milliseconds. */
const processesEndMs = 15_000;
const unusedPollMs = 50;

/** The installation of these settings, for the commands that end it. */
export function ownInstallation(settings: () => Settings): OwnInstallation {
  const installed = (): Settings => {
    const own = settings();
    if (isInstalled(own)) return own;
    throw new AtollError(
      'not_found',
      `There is no installation in ${own.dataDir}. Set ATOLL_DATA_DIR to the directory of the one you mean.`,
    );
  };
  return {
    isThere: () => isInstalled(settings()),
    require: () => void installed(),
    hasSandboxes: () => !isControl(installed()),
    announceDown: goesDown => announceDown(installed().dataDir, goesDown),
    endPlatform: async () => endInstance(installed().dataDir),
    async endSandboxes({ all }, terminal) {
      const own = installed();
      await untilUnused(own.dataDir);
      const { endSandboxes } = await import('./own-node.ts');
      const ended = await endSandboxes({ settings: own, log: createLog(own.logLevel, terminal.err) }, { all });
      // A machine of a cluster has no state: control finds out what is gone.
      return isMachine(own) ? {} : reportToDatabase(own, ended);
    },
  };
}

/** A first start that failed or could not join may have claimed things on this machine before anything else existed. */
const isInstalled = (own: Settings) => [apiKeyFile(own.dataDir), seedOf(own)].some(isThere) || isMachine(own);

/** It has no seed, and before it has joined it has nothing but its ID. */
const isMachine = (own: Settings) =>
  readMachineIdentity(own.dataDir) !== undefined || (isThere(join(own.dataDir, 'node-id')) && !isThere(seedOf(own)));

/**
 * It has state, but neither the mark of a single machine's database nor a node, whose folder is created first of all.
 */
const isControl = (own: Settings) =>
  isThere(seedOf(own)) && ![factsFile(own.dataDir), join(own.dataDir, 'node')].some(path => existsSync(path));

const seedOf = ({ dataDir }: Settings) => join(dataDir, 'seed');
const isThere = (file: string) => readIfThere(file) !== undefined;

/** A supervisor that was killed, or that got a signal together with its processes, may end before they do. */
async function untilUnused(dataDir: string): Promise<void> {
  const deadline = performance.now() + processesEndMs;
  while (isInUse(dataDir) && performance.now() < deadline) await Bun.sleep(unusedPollMs);
}

/**
 * Otherwise the next start would count them as lost. A missing or damaged database must not keep anybody from going
 * down.
 */
async function reportToDatabase(settings: Settings, ended: ExecutionRef[]): Promise<{ unreported?: string }> {
  try {
    const place = placeOf(settings);
    const { requirePair } = await import('../api/installation/check.ts');
    const { recordEnded } = await import('../api/local/ended.ts');
    await requirePair(place);
    await recordEnded(place.database, ended);
    return {};
  } catch (error) {
    return { unreported: messageOf(error) };
  }
}
