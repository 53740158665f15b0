import { cpus, totalmem } from 'node:os';
import { AtollError } from '../base/error.ts';
import type { NodeProtocol, NodeSandbox } from '../protocol/node.ts';
import type { NodeContext, Running } from './context.ts';
import { slotOf, slotsMax } from './layout.ts';
import type { History } from './metrics/history.ts';
import type { Machine } from './metrics/machine.ts';
import { dial } from './network/dial.ts';
import { createSandbox } from './sandbox/create.ts';
import { memoryAbilityOf } from './sandbox/memory.ts';
import { killSandbox } from './sandbox/kill.ts';
import { pausedSummaryOf, pauseSandbox } from './sandbox/pause.ts';
import { resumeSandbox } from './sandbox/resume.ts';
import { listSetAside, removeSetAside, setAside, takeBack } from './sandbox/set-aside.ts';
import { deleteSnapshot, listSnapshots, takeSnapshot } from './sandbox/snapshot.ts';
import { runningOf, updateNetwork } from './sandbox/update-network.ts';
import { volumeProtocolOf } from './volumes/protocol.ts';

/** The node as the api and the edge see it. */
export function protocolOf(node: NodeContext, { nodeId, history, machine }: { nodeId: string; history: History; machine: Machine }): NodeProtocol {
  return {
    info: async () => ({
      nodeId,
      cpuCount: cpus().length,
      memoryBytes: totalmem(),
      sandboxCount: node.running.size,
      sandboxesMax: slotsMax,
      driver: node.drivers.defaultName,
      memory: memoryAbilityOf(node, node.drivers.defaultName),
      memoryByDriver: Object.fromEntries(node.drivers.names.map(name => [name, memoryAbilityOf(node, name)])),
      machine: machine.facts,
    }),
    usage: async () => ({ ...machine.usage(), space: node.space.facts(), ...(node.pool && { pool: node.pool.counts() }), traffic: node.egress.totals() }),
    create: async request => summaryOf(await createSandbox(node, request)),
    kill: (target, reason) => killSandbox(node, target, reason),
    list: async () => [...node.running.values()].filter(running => !running.removal).map(summaryOf),
    memoryAbility: async ({ sandboxId }) => memoryAbilityOf(node, node.running.get(sandboxId)?.record.driver ?? node.drivers.defaultName),
    pause: (target, options) => pauseSandbox(node, target, options),
    async resume(request) {
      const running = await resumeSandbox(node, request);
      return { ...summaryOf(running), from: running.record.resumedFrom ?? 'filesystem' };
    },
    listPaused: async () => [...node.paused.values()].filter(({ record }) => !record.setAside).map(pausedSummaryOf),
    setAside: (target, reason) => setAside(node, target, reason),
    listSetAside: async () => listSetAside(node),
    takeBack: target => takeBack(node, target),
    removeSetAside: sandboxId => removeSetAside(node, sandboxId),
    snapshot: request => takeSnapshot(node, request),
    deleteSnapshot: snapshotId => deleteSnapshot(node, snapshotId),
    listSnapshots: async () => listSnapshots(node),
    exits: (after, waitMs, signal) => node.exits.read(after, waitMs, signal),
    async dial(sandboxId, port, signal) {
      const running = node.running.get(sandboxId);
      if (!running || running.removal) throw new AtollError('not_found', `sandbox ${sandboxId} does not run on this node`);
      node.logs.wake(sandboxId);
      return dial(running.namespace, port, signal);
    },
    updateNetwork: (target, network) => updateNetwork(node, target, network),
    volumes: volumeProtocolOf(node),
    logs: request => node.logs.read(request),
    traffic: async target => node.egress.counters(slotOf(node.layout.installation, runningOf(node, target).record.slot)),
    samples: async (sandboxId, range) => history.samples(sandboxId, range),
    latestSamples: async sandboxIds => history.latest(sandboxIds),
  };
}

function summaryOf({ record }: Running): NodeSandbox {
  const { sandboxId, executionId, startedAtMs, resources } = record;
  return { sandboxId, executionId, startedAtMs, resources };
}
