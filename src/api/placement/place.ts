import { counted } from '../../base/counted.ts';
import { AtollError } from '../../base/error.ts';
import type { NodeInfo, NodeProtocol } from '../../protocol/node.ts';
import type { DriverName } from '../../protocol/driver.ts';
import type { Db } from '../database/db.ts';
import { type Demands, demandsText, hasLabels, machinesApart, noDemands } from './demands.ts';
import {
  drainingAndAllocations,
  drainingNodes,
  isForgotten,
  namedNodesMax,
  type NodeAllocation,
  nodeAllocations,
} from './node-status.ts';
import { noCompatibleNode, type Nodes } from './nodes.ts';
import { roomOf } from './room.ts';

/** What a sandbox needs of its machine. */
export type Wanted = {
  cpuCount: number;
  memoryMiB: number;
  /** Absent: any. */
  driver?: DriverName | undefined;
  /** The only machine that has what it starts from: a volume, or memory. */
  home?: string | undefined;
  /** Machines that had no room a moment ago. */
  full?: ReadonlySet<string>;
  demands?: Demands;
  /** The sandbox itself, if it exists already. */
  sandboxId?: string;
};

/** A machine for a sandbox. */
export type Placed = { nodeId: string; protocol: NodeProtocol };

/** Weights of the parts in a comparison of machines; each part is 1 when all of it is promised, or starting. */
const weights = { memory: 0.5, cpu: 0.3, starting: 0.2 } as const;
/**
 * Where there are more than a few machines, this many are drawn at random and compared: that comes close to the best
 * choice, spreads simultaneous requests, and costs the same however many machines there are.
 */
const compared = { count: namedNodesMax, from: 8 } as const;
/** This many starts at a time keep a machine busy. */
const startsMax = 8;

/**
 * Chooses the machine of a new sandbox among those that no operator has taken out: the one with the most room, or the
 * one that has what the sandbox starts from. Writing the sandbox's row settles whether it still has room. Throws
 * `unavailable` when there is none, with the numbers; `precondition` where the machine that has it was taken out for
 * good.
 */
export async function placeSandbox(nodes: Nodes, db: Db, wanted?: Wanted): Promise<Placed> {
  const reached = nodes.list();
  // A single machine does not report on itself, and decides about its room by itself.
  const areFew = reached.length <= namedNodesMax && reached.every(({ info }) => info);
  const { closed, allocations } = areFew
    ? await drainingAndAllocations(db, idsOf(reached))
    : { closed: await drainingNodes(db) };
  const open = reached.filter(
    ({ nodeId }) => !closed.has(nodeId) && (wanted?.home === undefined || wanted.home === nodeId),
  );
  const [only] = open;
  if (open.length === 1 && only && !only.info) return only;
  const demands = wanted?.demands ?? noDemands;
  const able = open.filter(({ info }) => info && hasDriver(info, wanted?.driver));
  const apart = await machinesApart(db, demands, wanted?.sandboxId);
  const asked = able.filter(({ nodeId, info }) => hasLabels(demands, info?.labels) && !apart.has(nodeId));
  const candidates = asked.filter(({ nodeId }) => !wanted?.full?.has(nodeId));
  const drawn = candidates.length < compared.from ? [] : drawFrom(candidates, compared.count);
  const best = (await bestOf(db, drawn, wanted)) ?? (await bestOf(db, candidates, wanted, allocations));
  if (best) return best;
  if (wanted?.home !== undefined) await requireHome({ db, nodes }, wanted.home);
  throw noRoom(nodes, { closed: closed.size, able: able.length, asked: asked.length }, wanted);
}

type Candidate = ReturnType<Nodes['list']>[number];

const idsOf = (candidates: readonly Candidate[]) => candidates.map(({ nodeId }) => nodeId);

/** The one with the most room among these, if any has enough. `known`: allocations that were read already. */
async function bestOf(
  db: Db,
  candidates: readonly Candidate[],
  wanted: Wanted | undefined,
  known?: ReadonlyMap<string, NodeAllocation>,
): Promise<Placed | undefined> {
  if (candidates.length === 0) return undefined;
  const few = candidates.length <= compared.count ? idsOf(candidates) : undefined;
  const allocations = known ?? (await nodeAllocations(db, few));
  return (
    candidates
      .map(node => ({ node, score: scoreOf(node.info, allocations.get(node.nodeId)) }))
      // Equal ones take turns.
      .toSorted((a, b) => a.score - b.score || Math.random() - 0.5)
      .find(({ node }) => !wanted || roomOf(node.info, allocations.get(node.nodeId)).fits(wanted))?.node
  );
}

/** Some of them, at random. */
function drawFrom<T>(things: readonly T[], count: number): T[] {
  const left = [...things];
  return Array.from({ length: count }, () => left.splice(Math.floor(Math.random() * left.length), 1)).flat();
}

/**
 * Throws where the only machine that has what a sandbox starts from is out of reach: `precondition` where it is gone
 * for good, else `unavailable`.
 */
async function requireHome({ db, nodes }: { db: Db; nodes: Nodes }, home: string): Promise<void> {
  if (nodes.list().some(({ nodeId }) => nodeId === home)) return;
  const what = `The machine that has what the sandbox begins with (node ${home})`;
  if (await isForgotten({ db, nodes }, home))
    throw new AtollError('precondition', `${what} was taken out for good, and what it alone had is lost`, {
      detail: noCompatibleNode,
    });
  throw new AtollError('unavailable', `${what} is out of reach; nothing was changed`, {
    detail: noCompatibleNode,
    retryAfterSeconds: 5,
  });
}

/** The error for a sandbox for which no machine has room. */
function noRoom(
  nodes: Nodes,
  { closed, able, asked }: { closed: number; able: number; asked: number },
  wanted: Wanted | undefined,
): AtollError {
  const reached = nodes.list().length;
  const size = wanted ? ` with ${counted(wanted.cpuCount, 'CPU')} and ${wanted.memoryMiB} MiB` : '';
  const text = demandsText(wanted?.demands ?? noDemands);
  const demanded = text === '' ? '' : `${asked} of these with ${text}, `;
  const why =
    able === 0
      ? `${counted(reached, 'machine')} in reach, ${closed === 0 ? 'none' : closed} taken out`
      : `${able} of ${counted(reached, 'machine')} in reach ${able === 1 ? 'takes' : 'take'} sandboxes, ${demanded}` +
        'and none has that much left';
  return new AtollError('unavailable', `No machine takes a new sandbox${size} now: ${why}; nothing was changed`, {
    detail: asked === 0 ? noCompatibleNode : 'sandbox_capacity_unavailable',
    retryAfterSeconds: 5,
  });
}

function hasDriver(info: NodeInfo, driver: DriverName | undefined): boolean {
  return driver === undefined || info.memoryByDriver[driver] !== undefined;
}

function scoreOf(info: NodeInfo | undefined, allocation: NodeAllocation | undefined): number {
  const { memory, cpu } = roomOf(info, allocation).used;
  return weights.memory * memory + weights.cpu * cpu + weights.starting * ((allocation?.starting ?? 0) / startsMax);
}
