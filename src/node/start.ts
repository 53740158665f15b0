import { mkdirSync } from 'node:fs';
import { cpus, setPriority } from 'node:os';
import { createGate } from '../base/gate.ts';
import type { Log } from '../base/log.ts';
import type { BuildProtocol } from '../protocol/build.ts';
import type { DriverName, ExecutionRef, NodeProtocol, SandboxResources } from '../protocol/node.ts';
import { forgetOtherAgents, keepAgent } from './agent-copy.ts';
import { createBuilder } from './builder/builder.ts';
import { composeBuilds, type BuildSettings } from './builds/compose.ts';
import { detectCgroups } from './cgroup/cgroup.ts';
import type { NodeContext } from './context.ts';
import { createCrunDriver } from './drivers/crun/driver.ts';
import { createDrivers } from './drivers/drivers.ts';
import { createGvisorDriver } from './drivers/gvisor/driver.ts';
import { findRunsc } from './drivers/gvisor/find-runsc.ts';
import { raiseHostLimits } from './host-limits.ts';
import { claimInstallation } from './installation.ts';
import { layoutOf } from './layout.ts';
import { startHelper } from './native/helper.ts';
import { createEgress, resolversInside, type EgressSettings } from './network/egress/egress.ts';
import { startHistory } from './metrics/history.ts';
import { observeMachine } from './metrics/machine.ts';
import { outgoingMtu } from './network/host-table.ts';
import { openSandboxLogs } from './logs/sandbox-logs.ts';
import { protocolOf } from './protocol.ts';
import { createDisks } from './rootfs/disks.ts';
import { createLayers, type Layers } from './rootfs/layers.ts';
import { adoptSandboxes } from './sandbox/adopt.ts';
import { agentsInUse } from './sandbox/agents-in-use.ts';
import { createExits } from './sandbox/exits.ts';
import { findMemory } from './sandbox/find-memory.ts';
import { createPool } from './sandbox/pool.ts';
import { createRecords } from './sandbox/record.ts';
import { recordKey } from './sandbox/record-key.ts';
import { createReleases } from './sandbox/releases.ts';
import { killSandbox } from './sandbox/kill.ts';
import { forgetPartialSnapshots } from './sandbox/snapshot.ts';
import { removeSetAside } from './sandbox/set-aside.ts';
import { createSlots } from './sandbox/slots.ts';
import { imagesByPoint } from './sandbox/image-at.ts';
import { tellFailedDisk, tellSpace } from './sandbox/tell-space.ts';
import { watchSpace } from './space/space.ts';
import { endAllStanding } from './sandbox/standing.ts';
import { createVolumes } from './volumes/volumes.ts';

/** What programs in a sandbox see as the machine's name. Constant: forks and resumed sandboxes need no new one. */
const hostname = 'sandbox';

/** How many blank sandboxes are started at a time, for each core: while one waits for the kernel, another computes. */
const startsPerCore = 2;

/** Programs that remove files of sandboxes, at a time. */
const removalsAtOnce = 2;

/** Of the platform and what it starts, in nice(2)'s numbers: three times the weight of a process at 0. */
const platformNiceness = -5;

const defaultStandMs = 20_000;
const defaultMetricsHours = 24;
const defaultLogBytesMax = 1 << 30;
const defaultDiskReserveBytes = 2 * 1024 ** 3;

export type NodeOptions = {
  nodeId: string;
  dataDir: string;
  /** The built native helper. */
  helperBinary: string;
  /** The built agent's directory. */
  agentDir: string;
  /** The built builder's directory. */
  builderDir: string;
  /** Resolvers that sandboxes use. */
  nameservers: string[];
  /** What the operator chose about traffic out of sandboxes. */
  egress?: EgressSettings;
  /** How many blank sandboxes wait to be claimed, and the resources they are made with. */
  pool: { size: number; resources: SandboxResources };
  builds: BuildSettings;
  /** Where set-up has put CRIU, which keeps the memory of sandboxes; absent: nothing does. */
  criuDir?: string;
  /** Where set-up has put gVisor's runsc; absent: no sandbox can run on it. */
  runscDir?: string;
  /** What isolates sandboxes whose template asks for nothing else; default crun. */
  driver?: DriverName;
  /** For how long a paused sandbox whose memory was kept can be let go again at once; 0: not at all. Default 20 s. */
  standMs?: number;
  /** Of each sandbox, what it used in so many hours of its running is kept, and as long when it is gone. Default 24. */
  metricsHours?: number;
  /** The logs of sandboxes: bytes of all together (default 1 GiB), and whether what processes write is in them (default: yes). */
  logs?: { bytesMax?: number; output?: boolean };
  /** What nobody but the platform itself may take of the disk. Default 2 GiB. */
  diskReserveBytes?: number;
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
  /**
   * Ends every sandbox that runs and removes everything of the installation from the host, data excepted, and stops. What is paused or
   * set aside stays, unless `all` goes (default). Answers what was ended.
   */
  down(options?: { all: boolean }): Promise<ExecutionRef[]>;
};

/** Starts the node of this machine: adopts its sandboxes, removes leftovers, and puts the packet rules in place. */
export async function startNode(options: NodeOptions): Promise<Node> {
  const { log } = options;
  const installation = claimInstallation(options.dataDir);
  // A start that fails leaves no process behind and gives the directory back.
  await using undo = new AsyncDisposableStack();
  undo.defer(() => installation.unlock());
  const layout = layoutOf(options.dataDir, installation.runDir, installation.number);
  for (const dir of [layout.data, layout.mounts, layout.agentMount]) mkdirSync(dir, { recursive: true });
  const helper = await startHelper({ binary: options.helperBinary, runDir: layout.run, log, onLost: options.onHelperLost });
  undo.defer(() => helper.stop());
  const agent = keepAgent(options.agentDir, layout.agents);
  await helper.call('show', agent, layout.agentMount);
  setPriority(platformNiceness);
  for (const { setting, present, least } of raiseHostLimits()) log.warn('a limit of the host is lower than its sandboxes need', { setting, present, least });
  const cgroups = detectCgroups();
  const logs = openSandboxLogs({ directory: layout.logs, bytesMax: options.logs?.bytesMax ?? defaultLogBytesMax, log });
  const mtu = outgoingMtu();
  const { helperBinary } = options;
  const runsc = findRunsc(options.runscDir);
  const builder = createBuilder({ helper, helperBinary, builderDir: options.builderDir, layout });
  undo.defer(() => builder.stop());
  const drivers = createDrivers({
    layout,
    crun: createCrunDriver({ helper, helperBinary, layout, cgroups, hostname }),
    gvisor: createGvisorDriver({ runsc: runsc.found ? runsc.program : 'runsc', helper, helperBinary, cgroups, layout, hostname, mtu }),
    gvisorReason: runsc.found ? undefined : runsc.reason,
    defaultName: options.driver ?? 'crun',
  });
  const space = watchSpace({
    dataDir: options.dataDir,
    mounts: layout.mounts,
    mountsPid: helper.mountsPid,
    reserveBytes: options.diskReserveBytes ?? defaultDiskReserveBytes,
    images: () => imagesByPoint(node),
    log,
    onHeld: held => tellSpace(node, held),
    onFailed: disk => tellFailedDisk(node, disk),
  });
  undo.defer(() => space.stop());
  const node: NodeContext = {
    layout,
    log,
    helper,
    helperBinary,
    builder,
    agentDir: agent,
    agentsShown: new Set(),
    standMs: options.standMs ?? defaultStandMs,
    drivers,
    driver: drivers.bySlot,
    disks: createDisks({ helper, dir: layout.disks, files: systemFiles(resolversInside(options.nameservers)) }),
    layers: createLayers({ helper, dir: layout.layers, mounts: layout.mounts }),
    volumes: createVolumes({ helper, dir: layout.volumes, mounts: layout.mounts, log }),
    space,
    records: createRecords(layout.sandboxes, recordKey(layout.run)),
    memory: { kept: false, reason: 'this was not found out yet' },
    slots: createSlots(layout.installation),
    releases: createReleases(log),
    starts: createGate(startsPerCore * cpus().length),
    removals: createGate(removalsAtOnce),
    egress: createEgress({ layout, log, onDenied: logs.denied, onEnd: logs.traffic, nameservers: options.nameservers, settings: options.egress ?? {} }),
    logs,
    logOutput: options.logs?.output ?? true,
    running: new Map(),
    paused: new Map(),
    unreadable: new Map(),
    standing: new Set(),
    creating: new Map(),
    killing: new Set(),
    openingSnapshots: new Map(),
    exits: createExits(),
    mtu,
  };
  undo.defer(() => node.egress.stop());
  const found = await adoptSandboxes(node);
  forgetPartialSnapshots(node);
  forgetOtherAgents(layout.agents, [agent, ...agentsInUse(node)]);
  await node.egress.install();
  const { resources } = options.pool;
  node.memory = options.criuDir === undefined ? { kept: false, reason: 'CRIU was not set up' } : await findMemory(node, { criuDir: options.criuDir, cgroups, resources });
  // Only crun's sandboxes can wait without a root.
  if (options.pool.size > 0 && drivers.defaultName === 'crun') node.pool = createPool(node, options.pool.size, resources);
  const builds = composeBuilds(node, options.builds);
  const history = startHistory(node, cgroups, options.metricsHours ?? defaultMetricsHours);
  const machine = observeMachine(layout.data);
  undo.move();
  const stop = async () => {
    history.stop();
    machine.stop();
    await space.stop();
    // Without its helper the node can remove nothing: what is left is the next start's.
    if (helper.alive()) {
      await builds.stop();
      await node.pool?.stop();
      await node.releases.stop();
    }
    await builder.stop();
    await node.egress.stop();
    node.volumes.stop();
    await node.logs.close();
    await helper.stop();
    installation.unlock();
  };
  return {
    protocol: protocolOf(node, { nodeId: options.nodeId, history, machine }),
    builds,
    installation: layout.installation,
    helperPid: helper.pid,
    runDir: layout.run,
    layers: node.layers,
    found,
    stop,
    async down({ all } = { all: true }) {
      const every = [...node.running.values(), ...(all ? node.paused.values() : [])].map(({ record: { sandboxId, executionId } }) => ({ sandboxId, executionId }));
      // Registered last is done first. What one step can't do is told in the end; the others are done all the same.
      const steps = new AsyncDisposableStack();
      steps.defer(stop);
      steps.defer(() => node.egress.down());
      steps.defer(() => node.driver.retire());
      steps.defer(() => node.releases.stop());
      steps.defer(() => endAllStanding(node));
      steps.defer(async () => void (await Promise.all(every.map(target => killSandbox(node, target)))));
      if (all) for (const sandboxId of node.unreadable.keys()) steps.defer(() => removeSetAside(node, sandboxId));
      steps.defer(async () => node.pool?.stop());
      steps.defer(() => builds.stop());
      await steps.disposeAsync();
      // Only where nothing is left: who gets the number next would find it.
      installation.surrender();
      return every;
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
