import { messageOf } from '../../../base/error.ts';
import { step } from '../../../base/telemetry/trace.ts';
import type { CreateSandbox, Kept } from '../../../protocol/node.ts';
import type { SandboxVolume } from '../../../protocol/volume.ts';
import type { Driver } from '../../drivers/driver.ts';
import type { Egress } from '../../network/egress/egress.ts';
import type { OpenSnapshot, RestoreHost } from '../../snapshot/restore.ts';
import type { RunningRecord } from '../records/record.ts';
import type { Records } from '../records/record-store.ts';
import { placeOf } from '../records/start-ticks.ts';
import type { Processes } from '../slot/processes.ts';
import { slotDisk } from '../slot/slot-disk.ts';
import { configureAgent } from './agent-settings.ts';
import { begin, type BeginParts } from './begin.ts';
import type { Pool } from './ahead/pool.ts';
import { muchMemory } from '../../snapshot/later-pages.ts';
import { restoreProcesses, type RestoredParts } from './restored.ts';
import type { RestoredStandby } from './restored-standby.ts';
import type { Started } from './standby.ts';
import { startTemplateServer } from './start-command.ts';

/** A sandbox as it should run, wherever it begins. */
export type StartOrder = CreateSandbox & {
  driver: Driver;
  volumes: SandboxVolume[];
  /** Null: it was not paused. */
  resumedFrom: Kept | null;
};

/** What a sandbox begins with. */
type Origin =
  /** With the files of its template and an empty disk. */
  | { kind: 'template'; standby?: RestoredStandby | undefined }
  /** With its own files: it boots. */
  | { kind: 'files' }
  /** With the processes of a snapshot that were restored ahead, on a disk at their slot's place. */
  | { kind: 'restored'; standby: RestoredStandby }
  /** With the processes of a snapshot, on its own disk. */
  | {
      kind: 'memory';
      host: RestoreHost;
      snapshot: OpenSnapshot;
      /** The copy of the agent that these processes run from. */
      agentDir: string;
      bootId: string;
      controlToken: string;
      /** Called when none of them has run yet. If it fails, none will. */
      beforeRun(record: RunningRecord): Promise<void>;
    };

/** A sandbox that runs, has its settings and is recorded. */
export type StartedSandbox = { record: RunningRecord; processes: Processes };

/** What starting sandboxes needs. */
export type StartParts = BeginParts &
  RestoredParts & {
    egress: Egress;
    records: Records;
    /** Undefined: every create starts its own processes. */
    pool: Pool | undefined;
    /** Whether what processes write goes into the logs. */
    logOutput: boolean;
    /** See `NodeOptions`. */
    requireLease(): void;
  };

/**
 * Starts a sandbox: layers and disk, network, root, processes, the agent's settings, the template's server, the
 * record, in this order. Once it resolves, a restart of the platform adopts the sandbox. A failed start leaves no
 * processes and no slot; the sandbox's files stay, for the caller to judge. Errors: those of `begin`, and
 * `unavailable` if the template's server does not start.
 */
export async function startSandbox(parts: StartParts, order: StartOrder, origin: Origin): Promise<StartedSandbox> {
  const { records, disks, layout, processControl } = parts;
  const disk = records.diskOf(order.sandboxId);
  const started = await bringUp(parts, order, origin, disk);
  const { processes } = started;
  try {
    if (origin.kind === 'template' || origin.kind === 'restored') {
      records.keptOf(order.sandboxId);
      disks.give(slotDisk(layout, processes.slot), disk);
    }
    const controlToken = await step('init', () => configure(parts, order, origin, started));
    if (boots(origin)) {
      // Nothing of the user's has run so far.
      parts.requireLease();
      await step('start-command', () => startServer(parts, order, processes));
    }
    const record = recordOf(parts, order, origin, { ...started, controlToken });
    await step('record', () => records.write(record));
    return { record, processes };
  } catch (error) {
    await processControl.release(processes);
    throw error;
  }
}

/** Starts processes with a root and a network policy. */
async function bringUp(parts: StartParts, order: StartOrder, origin: Origin, disk: string): Promise<Started> {
  const { image, network, ...rest } = order;
  const { sandboxId } = order;
  const letOut = ({ slot, namespace }: Processes) => parts.egress.apply({ sandboxId, slot, namespace }, network);
  if ('standby' in origin && origin.standby) return wake(parts, origin.standby, letOut);
  if (origin.kind !== 'memory')
    return begin(
      parts,
      { ...rest, network, hostname: sandboxId, layers: image.layers, disk: origin.kind === 'template' ? null : disk },
      parts.pool,
    );
  const points = await Promise.all(image.layers.map(digest => parts.layers.mount(digest)));
  return restoreProcesses(parts, origin.host, {
    ...rest,
    ...origin,
    disk,
    points,
    later: muchMemory,
    onLinked: letOut,
    async onRestored(processes) {
      parts.requireLease();
      await origin.beforeRun(recordOf(parts, order, origin, { ...origin, processes }));
    },
  });
}

/** Lets processes that waited frozen run, as a sandbox of its own. If that fails, none of them is left. */
async function wake(
  { processControl, requireLease }: StartParts,
  standby: RestoredStandby,
  letOut: (processes: Processes) => Promise<void>,
): Promise<Started> {
  const { driver, slot } = standby.processes;
  try {
    await letOut(standby.processes);
    requireLease();
    driver.thaw(slot);
    return standby;
  } catch (error) {
    driver.killFrozen(slot);
    await processControl.release(standby.processes);
    throw error;
  }
}

/** Whether its processes are new; a sandbox with those of a snapshot continues. */
const boots = ({ kind }: Origin): boolean => kind === 'template' || kind === 'files';

/** Answers the control token that its agent now uses. */
async function configure(
  { egress, log, logOutput }: StartParts,
  order: StartOrder,
  origin: Origin,
  { processes, controlToken }: Started,
): Promise<string> {
  const { driver, sandboxId, image, accessToken, envVars, network, resumedFrom } = order;
  // A fork has another name than the sandbox that it was made from.
  if (!boots(origin)) await driver.nameHost?.(processes.pid, sandboxId);
  const settings = {
    // A sandbox that continues as it was has its environment; a fork is given another one.
    envVars: resumedFrom === 'memory' ? null : envVars,
    accessToken,
    defaults: boots(origin) ? { user: image.defaultUser, workdir: image.defaultWorkdir } : null,
    authorities: egress.trusted(network) ?? null,
    freshEntropy: !boots(origin),
    // A sandbox that continues as it was is the only one with its memory, and was recorded with its token before it
    // ran.
    freshControlToken: !boots(origin) && resumedFrom === null,
    hostname: sandboxId,
    logOutput,
    // Clients may look at its files as soon as it is known: those of a disk that it had before are complete.
    filesLater: origin.kind === 'template',
  };
  return configureAgent(processes.namespace, controlToken, settings).catch(error => {
    // A paused sandbox whose agent does not listen is still a sandbox.
    if (resumedFrom !== 'memory') throw error;
    log.warn('the agent of a resumed sandbox does not answer', { sandboxId, error: messageOf(error) });
    return controlToken;
  });
}

async function startServer(
  { log }: StartParts,
  { sandboxId, image, accessToken, resumedFrom }: StartOrder,
  { namespace }: Processes,
): Promise<void> {
  await startTemplateServer(namespace, image, accessToken).catch(error => {
    // Whatever keeps the server of a paused sandbox from starting again: the files must stay within reach.
    if (resumedFrom === null) throw error;
    log.warn('the start command failed when a sandbox was resumed from its files', {
      sandboxId,
      error: messageOf(error),
    });
  });
}

function recordOf(parts: StartParts, order: StartOrder, origin: Origin, started: Started): RunningRecord {
  const { driver, envVars: _envVars, accessToken: _accessToken, ...recorded } = order;
  const { processes, controlToken, bootId } = started;
  return {
    ...recorded,
    ...placeOf(processes.slot, processes.pid),
    state: 'running',
    driver: driver.name,
    controlToken,
    bootId,
    agentDir: agentDirOf(parts, origin),
    startedAtMs: Date.now(),
  };
}

function agentDirOf({ agentDir }: StartParts, origin: Origin): string {
  if (origin.kind === 'memory') return origin.agentDir;
  return origin.kind === 'restored' ? origin.standby.agentDir : agentDir;
}
