import { cpus, totalmem } from 'node:os';
import { AtollError } from '../base/error.ts';
import type { MemoryFacts, NodeProtocol, NodeSandbox } from '../protocol/node.ts';
import type { NodeUsage } from '../protocol/node-usage.ts';
import type { Drivers } from './drivers/drivers.ts';
import { slotsMax } from './layout.ts';
import type { SandboxLogs } from './logs/sandbox-logs.ts';
import type { History } from './metrics/history.ts';
import type { Machine } from './metrics/machine.ts';
import { dial } from './network/dial.ts';
import type { Egress } from './network/egress/egress.ts';
import { PendingDials } from './network/pending-dials.ts';
import { memoryAbilityOf, type CheckpointSupport } from './sandbox/keep/checkpoint-support.ts';
import { createSandbox, type CreateParts } from './sandbox/lifecycle/create.ts';
import { killSandbox, type KillParts } from './sandbox/lifecycle/end.ts';
import { pausedSummaryOf, pauseSandbox, type PauseParts } from './sandbox/lifecycle/pause.ts';
import { resumeSandbox, type ResumeParts } from './sandbox/lifecycle/resume.ts';
import { listSetAside, removeSetAside, setAside, takeBack } from './sandbox/lifecycle/set-aside.ts';
import { updateNetwork, type UpdateParts } from './sandbox/lifecycle/update-network.ts';
import { withdrawExecution } from './sandbox/lifecycle/withdraw.ts';
import type { Incidents } from './sandbox/incidents.ts';
import type { RunningRecord } from './sandbox/records/record.ts';
import type { Records } from './sandbox/records/record-store.ts';
import type { Withdrawn } from './sandbox/records/withdrawn.ts';
import { deleteSnapshot, listSnapshots } from './sandbox/snapshot/snapshot-store.ts';
import type { SnapshotParts } from './sandbox/snapshot/keep-snapshot.ts';
import { takeSnapshot } from './sandbox/snapshot/take-snapshot.ts';
import type { Pool } from './sandbox/start/ahead/pool.ts';
import type { RestoredAhead } from './sandbox/start/ahead/restored-ahead.ts';
import { turnsOfReads } from '../base/concurrency/long-reads.ts';
import type { Space } from './space/space.ts';
import { volumeProtocolOf, type VolumeParts } from './volumes/protocol.ts';

/** What the methods of the protocol need: each takes its part of it. */
type ProtocolParts = CreateParts &
  ResumeParts &
  PauseParts &
  KillParts &
  UpdateParts &
  SnapshotParts &
  Omit<VolumeParts, 'inTurn'> & {
    nodeId: string;
    drivers: Drivers;
    records: Records;
    withdrawn: Withdrawn;
    checkpoints: CheckpointSupport;
    incidents: Incidents;
    egress: Egress;
    logs: SandboxLogs;
    space: Space;
    /** Undefined: there is none. */
    pool: Pool | undefined;
    restoredAhead: RestoredAhead | undefined;
    history: History;
    machine: Machine;
    memoryFacts: MemoryFacts;
    /** Digests of the earlier builds of the agent that are here. */
    earlierAgents: readonly string[];
  };

/** The node, as the api and the edge see it. */
export function protocolOf(parts: ProtocolParts): NodeProtocol {
  const { sandboxes, drivers, checkpoints, egress, logs, history, machine, layout } = parts;
  const dials = new PendingDials();
  const inTurn = turnsOfReads();
  return {
    info: async () => ({
      nodeId: parts.nodeId,
      cpuCount: cpus().length,
      memoryBytes: totalmem(),
      sandboxCount: sandboxes.running().length,
      sandboxesMax: slotsMax,
      driver: drivers.default.name,
      memory: memoryAbilityOf(checkpoints, drivers.default),
      memoryByDriver: Object.fromEntries(
        drivers.names.map(name => [name, memoryAbilityOf(checkpoints, drivers.of(name))]),
      ),
      machine: machine.facts,
      restores: parts.memoryFacts,
      earlierAgents: [...parts.earlierAgents],
    }),
    usage: async () => ({
      ...machine.usage(),
      space: parts.space.facts(),
      ...poolCounts(parts),
      traffic: egress.totals(),
    }),
    create: async request => summaryOf(await createSandbox(parts, request)),
    kill: (target, reason) => killSandbox(parts, target, reason),
    withdraw: target => withdrawExecution(parts, target),
    list: async () =>
      sandboxes.running().map(state => summaryOf(state.record, state.kind === 'running' && state.diskFailed)),
    async memoryAbility({ sandboxId }) {
      const state = sandboxes.get(sandboxId);
      const runs = state?.kind === 'running' || state?.kind === 'pausing';
      return memoryAbilityOf(checkpoints, runs ? state.processes.driver : drivers.default);
    },
    pause: (target, options) => pauseSandbox(parts, target, options),
    async resume(request) {
      const record = await resumeSandbox(parts, request);
      return { ...summaryOf(record), from: record.resumedFrom ?? 'filesystem' };
    },
    listPaused: async () =>
      sandboxes.paused().flatMap(({ record }) => (record.setAside ? [] : [pausedSummaryOf(record)])),
    setAside: (target, reason) => setAside(parts, target, reason),
    listSetAside: async () => listSetAside(sandboxes),
    takeBack: target => takeBack(parts, target),
    removeSetAside: sandboxId => removeSetAside(parts, sandboxId),
    snapshot: request => takeSnapshot(parts, request),
    async deleteSnapshot(snapshotId) {
      await parts.restoredAhead?.forget(snapshotId);
      await deleteSnapshot(layout, snapshotId);
    },
    listSnapshots: async () => listSnapshots(layout),
    incidents: (after, waitMs, signal) => parts.incidents.read(after, waitMs, signal),
    async dial(sandboxId, port, signal) {
      const state = sandboxes.get(sandboxId);
      if (state?.kind !== 'running' && state?.kind !== 'pausing')
        throw new AtollError('not_found', `sandbox ${sandboxId} does not run on this node`);
      logs.wake(sandboxId);
      return dials.within(state.record, () => dial(state.processes.namespace, port, signal));
    },
    updateNetwork: (target, network) => updateNetwork(parts, target, network),
    volumes: volumeProtocolOf({ ...parts, inTurn }),
    logs: request => inTurn(request.sandboxId, () => logs.read(request)),
    traffic: async target => egress.counters(sandboxes.requireProcesses(target).processes.slot),
    samples: (sandboxId, range) => inTurn(sandboxId, () => history.samples(sandboxId, range)),
    latestSamples: async sandboxIds => history.latest(sandboxIds),
  };
}

/** Sandboxes on gVisor have no pool, but they can be restored ahead. */
const noPool = { size: 0, ready: 0, hits: 0, misses: 0, refills: 0, failures: 0 };

function poolCounts({ pool, restoredAhead }: Pick<ProtocolParts, 'pool' | 'restoredAhead'>): Pick<NodeUsage, 'pool'> {
  if (!restoredAhead) return pool ? { pool: pool.counts() } : {};
  return { pool: { ...(pool?.counts() ?? noPool), restored: restoredAhead.counts() } };
}

/** A sandbox begins on a disk that is whole: `diskFailed` is false by default. */
function summaryOf(record: RunningRecord, diskFailed = false): NodeSandbox {
  const { sandboxId, executionId, startedAtMs, resources } = record;
  return { sandboxId, executionId, startedAtMs, resources, diskFailed };
}
