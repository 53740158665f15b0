import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog } from '../../../src/base/telemetry/log.ts';
import type { Node } from '../../../src/node/start/options.ts';
import { nodeAt, serveNode } from '../../../src/wire/node-service.ts';

/** A node as other processes have it: everything goes over unix sockets, `dial` over the edge's. */
export function wiredNode(node: Node): Node {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-wire-'));
  const uid = process.getuid?.() ?? 0;
  const sides = (['api', 'edge'] as const).map(caller => {
    const path = join(folder, `${caller}.sock`);
    return {
      listening: serveNode({ node: node.protocol, builds: node.builds }, { path, caller, uid }, silentLog),
      remote: nodeAt(path),
    };
  });
  const [api, edge] = sides.map(({ remote }) => remote);
  if (!api || !edge) throw new Error('a node is called by two processes');
  const end = () => {
    for (const { listening, remote } of sides) {
      remote.close();
      listening.stop();
    }
    rmSync(folder, { recursive: true });
  };
  return {
    ...node,
    protocol: { ...api.node, dial: edge.node.dial },
    builds: api.builds,
    stop: () => node.stop().finally(end),
    down: () => node.down().finally(end),
  };
}
