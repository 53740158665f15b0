import type { Log } from '../base/log.ts';
import type { BuildProtocol } from '../protocol/build.ts';
import type { NodeProtocol } from '../protocol/node.ts';
import type { ShippedProtocol } from '../protocol/shipped.ts';
import type { Caller } from '../protocol/wire/method.ts';
import { buildTable, nodeTable } from '../protocol/wire/node-table.ts';
import { shippedTable } from '../protocol/wire/shipped-table.ts';
import { proxyOf } from './call.ts';
import { checkedMethods } from './checked.ts';
import { connectionTo } from './connect.ts';
import { listenOn } from './listen.ts';

/** What a node serves to the other processes. */
export type NodeService = { node: NodeProtocol; builds: BuildProtocol; shipped: ShippedProtocol };

const table = { node: nodeTable, builds: buildTable, shipped: shippedTable };

/** Serves a node at a unix socket to the process that runs as `uid`. */
export function serveNode(service: Pick<NodeService, 'node'> & Partial<NodeService>, to: { path: string; caller: Caller; uid: number }, log: Log): { stop(): void } {
  return listenOn({ ...to, log }, { methods: checkedMethods(table), implementation: service });
}

/** The node that is served at a unix socket. */
export function nodeAt(path: string): NodeService & { close(): void } {
  const connection = connectionTo(path, 'node');
  return { ...proxyOf<NodeService>(table, checkedMethods(table), connection), close: () => connection.close() };
}
