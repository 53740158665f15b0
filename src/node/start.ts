import { mkdirSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { AtollError } from '../base/error.ts';
import { createGate } from '../base/gate.ts';
import type { Log } from '../base/log.ts';
import type { BuildProtocol } from '../protocol/build.ts';
import type { NodeProtocol, NodeSandbox, SandboxResources } from '../protocol/node.ts';
import { forgetOtherAgents, keepAgent } from './agent-copy.ts';
import { composeBuilds, type BuildSettings } from './builds/compose.ts';
import { detectCgroups } from './cgroup/cgroup.ts';
import type { NodeContext, Running } from './context.ts';
import { createCrunDriver } from './drivers/crun/driver.ts';
import { claimInstallation } from './installation.ts';
import { layoutOf, slotOf, slotsMax } from './layout.ts';
import { startHelper } from './native/helper.ts';
import { dial } from './network/dial.ts';
import { createEgress } from './network/egress/egress.ts';
import { outgoingMtu } from './network/host-table.ts';
import { createDisks } from './rootfs/disks.ts';
import { createLayers, type Layers } from './rootfs/layers.ts';
import { adoptSandboxes } from './sandbox/adopt.ts';
import { createSandbox } from './sandbox/create.ts';
import { pausedSummaryOf, pauseSandbox } from './sandbox/pause.ts';
import { createPool } from './sandbox/pool.ts';
import { createRecords } from './sandbox/record.ts';
import { killSandbox } from './sandbox/remove.ts';
import { resumeSandbox } from './sandbox/resume.ts';
import { createSlots } from './sandbox/slots.ts';
import { takeSnapshot } from './sandbox/snapshot.ts';
import { runningOf, updateNetwork } from './sandbox/update-network.ts';

/** What programs in a sandbox see as the machine's name. Constant: forks and resumed sandboxes need no new one. */
const hostname = 'sandbox';

/** How many blank sandboxes are started at a time, for each core: while one waits for the kernel, another computes. */
const startsPerCore = 2;

export type NodeOptions = {
  nodeId: string;
  dataDir: string;
  /** The built native helper. */
  helperBinary: string;
  /** The built agent's directory. */
  agentDir: string;
  /** Resolvers that sandboxes use. */
  nameservers: string[];
  /** Authorities (PEM) that vouch for servers on the internet, where header rules apply; the host's own unless given. */
  egressRoots?: string;
  /** How many blank sandboxes wait to be claimed, and the resources they are made with. */
  pool: { size: number; resources: SandboxResources };
  builds: BuildSettings;
  log: Log;
  /** The native helper has died: nothing can be started or removed any more, and the platform must end. */
  onHelperLost(): void;
};

export type Node = {
  protocol: NodeProtocol;
  builds: BuildProtocol;
  /** The installation's number on this machine. */
  installation: number;
  helperPid: number;
  /** For sockets and other files that describe the running platform. Gone after a reboot. */
  runDir: string;
  layers: Layers;
  /** Sandboxes that were taken over, running and paused, and slots that were cleaned up, at the start. */
  found: { adopted: number; removed: number; paused: number };
  /** Ends the node's own processes. Sandboxes run on and are adopted by the next start. */
  stop(): Promise<void>;
  /** Removes every sandbox and everything of the installation on the host, data excepted, and stops. */
  down(): Promise<void>;
};

/** Starts the node of this machine: adopts its sandboxes, removes leftovers, and puts the packet rules in place. */
export async function startNode(options: NodeOptions): Promise<Node> {
  const { log } = options;
  const installation = claimInstallation(options.dataDir);
  const layout = layoutOf(options.dataDir, installation.runDir, installation.number);
  for (const dir of [layout.data, layout.mounts, layout.agentMount]) mkdirSync(dir, { recursive: true });
  const helper = await startHelper({ binary: options.helperBinary, runDir: layout.run, log, onLost: options.onHelperLost });
  const agent = keepAgent(options.agentDir, layout.agents);
  await helper.call('show', agent, layout.agentMount);
  const node: NodeContext = {
    layout,
    log,
    helper,
    helperBinary: options.helperBinary,
    driver: createCrunDriver({ helper, layout, cgroups: detectCgroups(), hostname }),
    disks: createDisks({ helper, dir: layout.disks, files: systemFiles(options.nameservers) }),
    layers: createLayers({ helper, dir: layout.layers, mounts: layout.mounts }),
    records: createRecords(layout.sandboxes),
    slots: createSlots(layout.installation),
    starts: createGate(startsPerCore * cpus().length),
    egress: createEgress({ layout, log, nameservers: options.nameservers, roots: options.egressRoots }),
    running: new Map(),
    paused: new Map(),
    creating: new Map(),
    exitListeners: new Set(),
    mtu: outgoingMtu(),
  };
  const found = await adoptSandboxes(node);
  if (found.adopted + found.paused === 0) forgetOtherAgents(layout.agents, agent);
  await node.egress.install();
  if (options.pool.size > 0) node.pool = createPool(node, options.pool.size, options.pool.resources);
  const builds = composeBuilds(node, options.builds);
  const stop = async () => {
    // Without its helper the node can remove nothing: what is left is the next start's.
    if (helper.alive()) {
      await builds.stop();
      await node.pool?.stop();
    }
    await node.egress.stop();
    await helper.stop();
    installation.unlock();
  };
  return {
    protocol: protocolOf(node, options.nodeId),
    builds,
    installation: layout.installation,
    helperPid: helper.pid,
    runDir: layout.run,
    layers: node.layers,
    found,
    stop,
    async down() {
      await builds.stop();
      await node.pool?.stop();
      await Promise.all([...node.running.values(), ...node.paused.values()].map(({ record }) => killSandbox(node, record)));
      node.driver.retire();
      await node.egress.down();
      await stop();
      installation.surrender();
    },
  };
}

/** What every sandbox has over its template: how names are resolved. */
function systemFiles(nameservers: string[]): Record<string, string> {
  return {
    'etc/hostname': `${hostname}\n`,
    'etc/hosts': `127.0.0.1 localhost ${hostname}\n::1 localhost ip6-localhost ip6-loopback\n`,
    'etc/resolv.conf': nameservers.map(address => `nameserver ${address}\n`).join(''),
  };
}

function protocolOf(node: NodeContext, nodeId: string): NodeProtocol {
  return {
    info: async () => ({
      nodeId,
      cpuCount: cpus().length,
      memoryBytes: totalmem(),
      sandboxCount: node.running.size,
      sandboxesMax: slotsMax,
      driver: node.driver.name,
      memory: { kept: false, reason: 'checkpoints are not set up' },
    }),
    create: async request => summaryOf(await createSandbox(node, request)),
    kill: target => killSandbox(node, target),
    list: async () => [...node.running.values()].filter(running => !running.removal).map(summaryOf),
    pause: (target, options) => pauseSandbox(node, target, options),
    async resume(request) {
      const running = await resumeSandbox(node, request);
      return { ...summaryOf(running), from: running.record.resumedFrom ?? 'filesystem' };
    },
    listPaused: async () => [...node.paused.values()].map(pausedSummaryOf),
    snapshot: request => takeSnapshot(node, request),
    deleteSnapshot: async () => {},
    listSnapshots: async () => [],
    onExit(listener) {
      node.exitListeners.add(listener);
      return () => node.exitListeners.delete(listener);
    },
    async dial(sandboxId, port, signal) {
      const running = node.running.get(sandboxId);
      if (!running || running.removal) throw new AtollError('not_found', `sandbox ${sandboxId} does not run on this node`);
      return dial(running.namespace, port, signal);
    },
    updateNetwork: (target, network) => updateNetwork(node, target, network),
    traffic: async target => node.egress.counters(slotOf(node.layout.installation, runningOf(node, target).record.slot)),
  };
}

function summaryOf({ record }: Running): NodeSandbox {
  const { sandboxId, executionId, startedAtMs, resources } = record;
  return { sandboxId, executionId, startedAtMs, resources };
}
