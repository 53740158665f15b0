import type { Log } from '../base/telemetry/log.ts';
import type { Machine, MachineService, NodeService, NodeWay } from '../protocol/cluster.ts';
import type { Caller } from '../protocol/wire/method.ts';
import {
  draftTable,
  gateTable,
  layerTable,
  pauseTable,
  snapshotTable,
  transferTable,
  uploadTable,
  volumeCopyTable,
} from '../protocol/wire/cluster-table.ts';
import { buildTable, nodeTable } from '../protocol/wire/node-table.ts';
import { shippedTable } from '../protocol/wire/shipped-table.ts';
import { proxyOf } from './call.ts';
import { checkedMethods } from './checked.ts';
import { connectionBy, connectionTo } from './connect.ts';
import { listenOn } from './listen.ts';
import { openTls } from './tls/connect-tls.ts';
import type { FarEnds } from './tls/far-ends.ts';
import { listenTls, type NodeIdentity } from './tls/listen-tls.ts';

const table = {
  node: nodeTable,
  builds: buildTable,
  shipped: shippedTable,
  layers: layerTable,
  pauses: pauseTable,
  drafts: draftTable,
  snapshots: snapshotTable,
  uploads: uploadTable,
  volumeCopies: volumeCopyTable,
};

/** All methods of a machine for control. */
export const machineTable = { ...table, gate: gateTable, transfers: transferTable };

/** Serves the services of a node at a unix socket to the process that runs as `uid`. */
export function serveNode(
  service: Pick<NodeService, 'node'> & Partial<NodeService>,
  to: { path: string; caller: Caller; uid: number },
  log: Log,
): { stop(): void } {
  const served = Object.fromEntries(Object.entries(table).filter(([name]) => name in service));
  return listenOn({ ...to, log }, { methods: checkedMethods(served), implementation: service });
}

/** The node that is served at a unix socket. */
export function nodeAt(path: string): NodeService & { close(): void } {
  const connection = connectionTo(path, 'node');
  return { ...proxyOf<NodeService>(table, checkedMethods(table), connection), close: () => connection.close() };
}

/** Serves a machine of a cluster to control over TLS. */
export function serveMachine(
  service: MachineService,
  at: { hostname: string; port: number; identity: NodeIdentity },
  log: Log,
): ReturnType<typeof listenTls> {
  return listenTls(at, { methods: checkedMethods(machineTable), implementation: service, log });
}

/**
 * A machine of the cluster, called over TLS by the process of control whose identity `way` answers. `farEnds` records
 * the far ends of the connections that the machine's answers pass.
 */
export function machineAt(nodeId: string, way: () => Promise<NodeWay>, log: Log, farEnds?: FarEnds): Machine {
  const refused = (reason: string) => log.warn('what answers for a node is refused', { nodeId, reason });
  const connection = connectionBy(async () => {
    const { place, identity } = await way();
    return openTls(place, identity, refused, farEnds);
  }, `node ${nodeId}`);
  const { drop, close } = connection;
  return { ...proxyOf<MachineService>(machineTable, checkedMethods(machineTable), connection), drop, close };
}
