import { randomHex } from '../../base/secret.ts';
import type { EgressPolicy } from '../../protocol/network.ts';
import type { DriverName, SandboxResources, Snapshot } from '../../protocol/node.ts';
import { initAgent } from '../agent-call.ts';
import { runInSandbox, type AgentProcess, type ProcessEnd } from '../agent-process.ts';
import type { NodeContext } from '../context.ts';
import { startBlank } from '../sandbox/blank.ts';
import { startRooted } from '../sandbox/start-rooted.ts';
import { slotDisk, slotMountPoint } from '../sandbox/slot-disk.ts';
import { keepSnapshot } from '../sandbox/snapshot.ts';
import { releaseBlank } from '../sandbox/remove.ts';

/** A sandbox in which steps of a build run: the same isolation and network as any, and nobody else's. */
export type BuildSandbox = AsyncDisposable & {
  run(process: AgentProcess, onOutput: (stream: 'stdout' | 'stderr', bytes: Uint8Array) => void): Promise<ProcessEnd>;
  /** Shows a directory of the helper's mount namespace inside, writable. */
  bind(source: string, target: string): Promise<void>;
  /** False where a directory can't be shown to what runs already. */
  canBind: boolean;
  /** Ends all processes. What was written stays, in an overlay's upper directory at the answered path of the helper's mount namespace, until disposal. */
  finish(): Promise<{ upper: string }>;
  /** Keeps what it is at this moment, processes and memory included; it runs on. Errors: those of a snapshot. */
  keep(snapshotId: string): Promise<Omit<Snapshot, 'driver'>>;
  /** True when the kernel has ended processes for lack of memory. */
  outOfMemory(): boolean;
};

export type BuildSandboxOptions = { /** Absent: the node's default. */ driver: DriverName | undefined; layers: string[]; resources: SandboxResources; env: Record<string, string>; user: string; workdir: string; authorities: string | undefined; network: EgressPolicy };

/**
 * Starts a sandbox on the given layers. It has no record: whatever a crash leaves of it is removed by the next start.
 */
export async function openBuildSandbox(node: NodeContext, options: BuildSandboxOptions): Promise<BuildSandbox> {
  const points = await Promise.all(options.layers.map(digest => node.layers.mount(digest)));
  const driver = node.drivers.of(options.driver);
  const blank = driver.adoptsRoot
    ? await startBlank(node, options.resources)
    : await startRooted(node, { driver, sandboxId: 'build', resources: options.resources, layers: points, network: options.network });
  const { slot, pid, namespace, controlToken, bootId, ended } = blank;
  try {
    if (driver.adoptsRoot) {
      await node.egress.apply({ sandboxId: `build in ${slot.name}`, slot, namespace }, options.network);
      await driver.giveRoot(slot, pid, { layers: points, disk: slotMountPoint(node, slot) });
    }
    // Names are allowed by looking at what goes by, and that may need an authority of the installation's own.
    const trusted = [options.authorities, node.egress.trusted(options.network)].filter(Boolean).join('\n');
    await initAgent(namespace, controlToken, {
      envVars: options.env,
      accessToken: null,
      timestamp: new Date().toISOString(),
      defaultUser: options.user,
      defaultWorkdir: options.workdir,
      ...(trusted !== '' && { caBundle: trusted }),
      entropy: Buffer.from(randomHex(32), 'hex').toString('base64'),
    });
  } catch (error) {
    await releaseBlank(node, blank);
    throw error;
  }
  return {
    canBind: driver.adoptsRoot,
    run: (process, onOutput) => runInSandbox(namespace, process, onOutput),
    bind: async (source, target) => void (await node.helper.call('bind', pid, slot.baseId, source, target)),
    async finish() {
      await node.helper.call('kill', slot.name).catch(() => {}); // it has ended by itself
      await ended;
      return { upper: `${slotMountPoint(node, slot)}/upper` };
    },
    keep(snapshotId) {
      const source = { slot, pid, disk: slotDisk(node, slot), layers: options.layers, facts: { agentDir: node.agentDir, bootId, controlToken } };
      return keepSnapshot(node, { snapshotId, memory: true }, take => take(source));
    },
    outOfMemory: () => node.driver.outOfMemoryKills(slot) > 0,
    [Symbol.asyncDispose]: () => releaseBlank(node, blank),
  };
}
