import { AtollError } from '../../base/error.ts';
import type { PauseFacts } from '../../protocol/cluster.ts';
import type { Db } from '../database/db.ts';
import type { Demands } from './demands.ts';
import { misfit } from './misfit.ts';
import { noCompatibleNode, type Nodes } from './nodes.ts';
import { placeSandbox } from './place.ts';

/** A sandbox that should go on at another machine than `home`. */
type Leaving = {
  home: string;
  facts: PauseFacts;
  /** False: from its files, even where its memory was kept. */
  memory: boolean;
  cpuCount: number;
  memoryMiB: number;
  /** Machines that had no room a moment ago. */
  full?: ReadonlySet<string> | undefined;
  /** The sandbox itself, if it exists already. */
  sandboxId?: string;
  demands?: Demands | undefined;
};

/**
 * Another machine that fits a sandbox and has room for it. Errors: `precondition` with the reason for each machine in
 * reach, `unavailable` where none has room.
 */
export async function placeElsewhere({ db, nodes }: { db: Db; nodes: Nodes }, leaving: Leaving): Promise<string> {
  const { home, facts, memory, cpuCount, memoryMiB, full = [], sandboxId, demands } = leaving;
  const reasons: string[] = [];
  const unfit = new Set<string>([home]);
  const others = nodes.list().filter(({ nodeId }) => nodeId !== home);
  for (const { nodeId, info } of others) {
    const reason = misfit(facts, info, memory);
    if (reason === null) continue;
    unfit.add(nodeId);
    reasons.push(`${nodeId}: ${reason}`);
  }
  if (others.length > 0 && reasons.length === others.length)
    throw new AtollError('precondition', `no other machine takes it (${reasons.join('; ')})`, {
      detail: noCompatibleNode,
    });
  const size = { cpuCount, memoryMiB, driver: facts.driver };
  const asked = { ...(sandboxId !== undefined && { sandboxId }), ...(demands && { demands }) };
  return (await placeSandbox(nodes, db, { ...size, ...asked, full: unfit.union(new Set(full)) })).nodeId;
}
