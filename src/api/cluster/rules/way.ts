import { AtollError } from '../../../base/error.ts';
import type { NodeWay } from '../../../protocol/cluster.ts';
import { type Authority, controlIdentity } from './authority.ts';
import type { Machines } from './machines.ts';

/**
 * Answers the edge's request for the way to a machine, with the edge's own identity, which may dial and nothing else.
 */
export function wayFor({
  authority,
  machines,
}: {
  authority: Authority | null;
  machines: Machines | null;
}): (nodeId: string) => Promise<NodeWay> {
  if (!authority || !machines)
    return async () => {
      throw new AtollError('unimplemented', 'This installation is one machine');
    };
  const identity = controlIdentity(authority, 'edge');
  return async nodeId => machines.way(nodeId, identity);
}
