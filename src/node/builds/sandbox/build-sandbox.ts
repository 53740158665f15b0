import type { EgressPolicy } from '../../../protocol/network/network.ts';
import type { SandboxResources, Snapshot } from '../../../protocol/node.ts';
import type { DriverName } from '../../../protocol/driver.ts';
import { runInSandbox, type AgentProcess, type OnOutput, type ProcessEnd } from '../../agent-client/process.ts';
import type { Drivers } from '../../drivers/drivers.ts';
import { slotDisk, slotMountPoint } from '../../sandbox/slot/slot-disk.ts';
import { keepSnapshot, type SnapshotParts } from '../../sandbox/snapshot/keep-snapshot.ts';
import { configureAgent } from '../../sandbox/start/agent-settings.ts';
import { begin, type BeginParts } from '../../sandbox/start/begin.ts';

/** A sandbox in which steps of a build run: the same isolation and network as any, and nobody else's. */
export type BuildSandbox = AsyncDisposable & {
  run(process: AgentProcess, onOutput: OnOutput): Promise<ProcessEnd>;
  /** Shows a directory of the helper's mount namespace inside, writable. */
  bind(source: string, target: string): Promise<void>;
  /** False where a directory can't be shown to what runs already. */
  canBind: boolean;
  /**
   * Ends all processes. What was written stays, in an overlay's upper directory at the answered path of the helper's
   * mount namespace, until disposal.
   */
  finish(): Promise<{ upper: string }>;
  /** Keeps what it is at this moment, processes and memory included; it runs on. Errors: those of a snapshot. */
  keep(snapshotId: string): Promise<Omit<Snapshot, 'driver'>>;
  /** True when the kernel has ended processes for lack of memory. */
  outOfMemory(): boolean;
};

/** What a build sandbox begins with. */
export type BuildSandboxOptions = {
  /** Undefined: the node's default. */
  driver: DriverName | undefined;
  /** Layer digests, lowest first. */
  layers: string[];
  resources: SandboxResources;
  env: Record<string, string>;
  user: string;
  workdir: string;
  authorities: string | undefined;
  network: EgressPolicy;
};

/** What build sandboxes are started with. */
export type BuildSandboxParts = BeginParts &
  SnapshotParts & {
    drivers: Drivers;
    /** The present copy of the agent. */
    agentDir: string;
    logOutput: boolean;
  };

/**
 * Starts a sandbox on the given layers. It has no record: whatever a crash leaves of it is removed by the next start.
 */
export async function openBuildSandbox(parts: BuildSandboxParts, options: BuildSandboxOptions): Promise<BuildSandbox> {
  const { layout, helper, egress, processControl } = parts;
  const { layers, resources, network } = options;
  const driver = parts.drivers.toStart(options.driver);
  const order = { sandboxId: 'build', driver, layers, resources, network, volumes: [], disk: null };
  // Standby sandboxes of the pool are for creates, which somebody waits for.
  const { processes, controlToken, bootId } = await begin(parts, order, undefined);
  const { slot, pid, namespace, ended } = processes;
  try {
    // Names are allowed by looking at what goes by, and that may need an authority of the installation's own.
    const authorities = [options.authorities, egress.trusted(network)].filter(Boolean).join('\n');
    await configureAgent(namespace, controlToken, {
      envVars: options.env,
      accessToken: null,
      defaults: { user: options.user, workdir: options.workdir },
      authorities: authorities === '' ? null : authorities,
      freshEntropy: true,
      logOutput: parts.logOutput,
    });
  } catch (error) {
    await processControl.release(processes);
    throw error;
  }
  return {
    canBind: driver.capabilities.adoptsRoot,
    run: (process, onOutput) => runInSandbox(namespace, process, onOutput),
    bind: async (source, target) => helper.call('bind', { pid, baseId: slot.baseId, source, target }),
    async finish() {
      await helper.call('kill', { tag: slot.name }).catch(() => {}); // it has ended by itself
      await ended;
      return { upper: `${slotMountPoint(layout, slot)}/upper` };
    },
    keep: snapshotId =>
      keepSnapshot(
        parts,
        { snapshotId, memory: true },
        {
          processes,
          disk: slotDisk(layout, slot),
          layers,
          facts: { agentDir: parts.agentDir, bootId, controlToken },
          volumes: [],
        },
      ),
    outOfMemory: () => driver.outOfMemoryKills(slot) > 0,
    [Symbol.asyncDispose]: () => processControl.release(processes),
  };
}
