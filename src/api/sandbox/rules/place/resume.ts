import { AtollError, messageOf } from '../../../../base/error.ts';
import type { DurablePauses } from '../../../blob/rules/pauses.ts';
import type { Db } from '../../../database/db.ts';
import { placeElsewhere } from '../../../placement/elsewhere.ts';
import { nodeFull } from '../../../../protocol/no-room.ts';
import { nodesToEmpty } from '../../../placement/node-status.ts';
import { noCompatibleNode, type Nodes } from '../../../placement/nodes.ts';
import type { SandboxRecord } from '../../record.ts';
import { demandsOf } from '../demands.ts';

/** A machine that does not describe itself within this time counts as away. Milliseconds. */
const answerMs = 2_000;

/** Dependencies of choosing the machine of a resume. */
type PlaceDeps = { db: Db; nodes: Nodes; durablePauses: DurablePauses | null };

/** Machines that had no room a moment ago, and their errors. */
type Full = ReadonlyMap<string, AtollError>;

/**
 * The machine on which a paused sandbox should run. That is its own one or, where this is away, full or being drained
 * and the pause is in the store, another one that it fits. Errors: `unavailable` with the reasons, `precondition` where
 * its memory fits no machine in reach.
 */
export async function placeOfResume(
  deps: PlaceDeps,
  paused: SandboxRecord,
  memory: boolean,
  full: Full = new Map(),
): Promise<string> {
  const fullHome = full.get(paused.nodeId);
  const isEmptied = (await nodesToEmpty(deps.db)).has(paused.nodeId);
  const isHome = deps.nodes.list().some(({ nodeId }) => nodeId === paused.nodeId);
  const isStored = paused.durability === 'cluster' && deps.durablePauses !== null;
  // A machine may have gone a moment ago: a sandbox that can go elsewhere should not find that out by a failed resume.
  if (isHome && !isEmptied && !fullHome && (!isStored || (await answers(deps.nodes, paused.nodeId))))
    return paused.nodeId;
  const why = isEmptied ? 'is being drained' : fullHome ? `has no room (${fullHome.message})` : 'is away';
  if (isStored && deps.durablePauses) return elsewhere(deps, deps.durablePauses, paused, { memory, full, why });
  if (fullHome) throw noRoomAtHome(paused.sandboxId, fullHome);
  // Reports a machine that is out of reach before anything is changed.
  deps.nodes.get(paused.nodeId);
  throw new AtollError(
    'unavailable',
    `Sandbox "${paused.sandboxId}" stays paused: its machine is being drained; try again when that is over`,
    { detail: noCompatibleNode },
  );
}

async function answers(nodes: Nodes, nodeId: string): Promise<boolean> {
  const late = Bun.sleep(answerMs).then(() => false);
  return Promise.race([
    nodes
      .get(nodeId)
      .info()
      .then(() => true),
    late,
  ]).catch(() => false);
}

function noRoomAtHome(sandboxId: string, cause: AtollError): AtollError {
  return new AtollError(
    'unavailable',
    `There is no room to resume sandbox "${sandboxId}" now; it stays paused (${cause.message})`,
    { detail: cause.detail ?? nodeFull, fields: cause.fields, retryAfterSeconds: 5, cause },
  );
}

async function elsewhere(
  deps: PlaceDeps,
  pauses: DurablePauses,
  sandbox: SandboxRecord,
  { memory, full, why }: { memory: boolean; full: Full; why: string },
): Promise<string> {
  const { sandboxId, executionId, nodeId: home, cpuCount, memoryMiB } = sandbox;
  const demands = demandsOf(sandbox);
  const facts = await pauses.facts(executionId);
  try {
    const size = { cpuCount, memoryMiB };
    return await placeElsewhere(deps, { home, facts, memory, ...size, sandboxId, demands, full: new Set(full.keys()) });
  } catch (error) {
    // If its own machine merely lacks room, it goes on there later.
    if (error instanceof AtollError && error.code === 'precondition' && !full.has(home))
      throw new AtollError(
        'precondition',
        `Sandbox "${sandboxId}" stays paused: its machine ${why}, and ${error.message}` +
          (memory && facts.kept === 'memory' ? '. With memory: false it may start from its files' : ''),
        { detail: noCompatibleNode, cause: error },
      );
    const detail = full.has(home) ? nodeFull : error instanceof AtollError && error.detail;
    throw new AtollError(
      'unavailable',
      `Sandbox "${sandboxId}" stays paused: its machine ${why}. ${messageOf(error)}`,
      { detail: detail || noCompatibleNode, retryAfterSeconds: 5, cause: error },
    );
  }
}
