import { AtollError } from '../../base/error.ts';
import type { Log } from '../../base/telemetry/log.ts';
import type { Machine } from '../../protocol/cluster.ts';
import type { DirectoryProtocol, Route } from '../../protocol/directory.ts';
import type { NodeProtocol } from '../../protocol/node.ts';
import { machineAt } from '../../wire/node-service.ts';
import { FarEnds } from '../../wire/tls/far-ends.ts';

/** Connects into sandboxes, and closes connections into them. */
type Dialing = {
  dial(sandboxId: string, port: number, signal?: AbortSignal): Promise<number>;
  /** Far ends of connections carried by other machines. */
  farEnds?: Pick<FarEnds, 'take'>;
  close(): void;
};

/** Connects into the sandboxes of this machine. */
export function ownDial({ node, close }: { node: Pick<NodeProtocol, 'dial'>; close(): void }): Dialing {
  return { dial: (sandboxId, port, signal) => node.dial(sandboxId, port, signal), close };
}

/** How many machines to keep connections to; beyond this, the one used first goes. */
const machinesMax = 2_000;

type Find = (sandboxId: string) => Route | undefined | Promise<Route | undefined>;

/** Connects into sandboxes on any machine of a cluster, through one connection to each machine. */
export function clusterDial(api: Pick<DirectoryProtocol, 'way'>, find: Find, log: Log): Dialing {
  const machines = new Map<string, Machine>();
  const farEnds = new FarEnds();
  return {
    farEnds,
    async dial(sandboxId, port, signal) {
      const route = await find(sandboxId);
      if (!route) throw new AtollError('not_found', `sandbox ${sandboxId} is not there`);
      return machineOf(route.nodeId).node.dial(sandboxId, port, signal);
    },
    close() {
      for (const machine of machines.values()) machine.close();
    },
  };

  function machineOf(nodeId: string): Machine {
    const known = machines.get(nodeId);
    if (known) return known;
    const [oldest] = machines;
    if (oldest && machines.size >= machinesMax) {
      machines.delete(oldest[0]);
      oldest[1].close();
    }
    const machine = machineAt(nodeId, () => api.way(nodeId), log, farEnds);
    machines.set(nodeId, machine);
    return machine;
  }
}
