import type { EgressPolicy } from '../../../protocol/network/network.ts';
import type { SandboxResources, Snapshot } from '../../../protocol/node.ts';
import type { DriverName } from '../../../protocol/driver.ts';
import { runInSandbox, type AgentProcess, type OnOutput, type ProcessEnd } from '../../agent-client/process.ts';
import type { Drivers } from '../../drivers/drivers.ts';
import { slotDisk, slotMountPoint } from '../../sandbox/slot/slot-disk.ts';
import { keepSnapshot, type SnapshotParts } from '../../sandbox/snapshot/keep-snapshot.ts';
import { configureAgent } from '../../sandbox/start/agent-settings.ts';
import { begin, type BeginParts } from '../../sandbox/start/begin.ts';

/**
 * A sandbox in which steps of a build run: with the same isolation and network as any other, used by this build alone.
 */
export type BuildSandbox = AsyncDisposable & {
  run(process: AgentProcess, onOutput: OnOutput): Promise<ProcessEnd>;
  /** Shows a directory of the helper's mount namespace inside, writable. */
  bind(source: string, target: string): Promise<void>;
  /** False if a directory can't be shown to processes that already run. */
  canBind: boolean;
  /**
   * Ends all processes. What they wrote stays until disposal, in the upper directory of an overlay, at the answered
   * path of the helper's mount namespace.
   */
  finish(): Promise<{ upper: string }>;
  /** Keeps its present state, processes and memory included; it runs on. Errors: those of a snapshot. */
  keep(snapshotId: string): Promise<Omit<Snapshot, 'driver'>>;
  /** True if the kernel has ended processes for lack of memory. */
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

/** What build sandboxes need to start. */
export type BuildSandboxParts = BeginParts &
  SnapshotParts & {
    drivers: Drivers;
    /** The current copy of the agent. */
    agentDir: string;
    logOutput: boolean;
  };

/** Starts a sandbox on the given layers. It has no record: the next start removes whatever a crash leaves of it. */
export async function openBuildSandbox(parts: BuildSandboxParts, options: BuildSandboxOptions): Promise<BuildSandbox> {
  const { layout, helper, egress, processControl } = parts;
  const { layers, resources, network } = options;
  const driver = parts.drivers.toStart(options.driver);
  const order = { sandboxId: 'build', driver, layers, resources, network, volumes: [], disk: null };
  // Standby sandboxes of the pool are for creates, which somebody waits for.
  const { processes, controlToken, bootId } = await begin(parts, order, undefined);
  const { slot, pid, namespace, ended } = processes;
  try {
    // Rules by name inspect the traffic, and that may need the installation's own authority.
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
