import { messageOf } from '../../../base/error.ts';
import { sandboxStates } from '../../../protocol/state.ts';
import { isSuspect } from '../../database/timeline.ts';
import type { Identity } from '../../identity/rules/identity.ts';
import type { ExecutionRef, NodeProtocol, PausedSandbox, SandboxIncident } from '../../../protocol/node.ts';
import { onceStored, takenBack } from '../../blob/store/blobs.ts';
import { recordDiskFailed } from '../store/disk-failed.ts';
import { correctKept, finishPause } from '../store/pause.ts';
import { endedElsewhere } from '../store/past.ts';
import { sandboxesAtOnce, sandboxesById, sandboxesElsewhere, sandboxesOn } from '../store/read.ts';
import type { KillReason } from '../store/events.ts';
import { deleteLost, deleteSandbox } from '../store/state.ts';
import { applyNetwork } from '../workflows/network-steps.ts';
import { forEachParallel } from '../../../base/concurrency/parallel.ts';
import type { SandboxFacts } from '../record.ts';
import type { SandboxDirectory } from '../directory/directory.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import type { BusyExecutions } from '../rules/busy.ts';
import type { Nodes } from '../../placement/nodes.ts';
import type { Db } from '../../database/db.ts';
import type { Clock } from '../../../base/clock.ts';

/** Dependencies of recording an incident. */
export type IncidentDeps = { clock: Clock; db: Db; directory: SandboxDirectory; log: Log };

/** Dependencies of reconciling store and nodes. */
type AdoptionDeps = {
  busy: BusyExecutions;
  clock: Clock;
  db: Db;
  directory: SandboxDirectory;
  identity: Identity;
  log: Log;
  nodes: Nodes;
  seed: Uint8Array;
};

/** How often this runs, milliseconds. */
export const adoptionIntervalMs = 30_000;
const endsAtOnce = 8;
/** Machines that are compared with the database at a time: each takes a connection to it. */
const nodesAtOnce = 32;
const appliesAtOnce = 8;

/**
 * Reconciles store and nodes: a sandbox that no node has any more is forgotten, one that the store does not know (or
 * knows as another execution) is set aside, and the rest is adopted into the directory. Nothing is deleted because a
 * list lacks it: the store may be the one that is wrong.
 *
 * In the `firstRound` of a process, each sandbox's node is told again what may leave it: an update may have been cut
 * short.
 *
 * The order of reading matters, because creates, pauses and resumes go on meanwhile: a row that says `running` or
 * `paused` before the node is asked must be in the node's answer unless it has changed since, and a sandbox in the
 * node's answer had its row before, so the rows read afterwards must contain it.
 */
export async function reconcileNodes(deps: AdoptionDeps, firstRound = false): Promise<void> {
  const round = { isFirst: firstRound, isSuspect: await isSuspect(deps.db, deps.clock()) };
  // A machine that does not answer delays only a few others.
  await forEachParallel(deps.nodes.list(), nodesAtOnce, ({ nodeId, protocol }) =>
    reconcileNode(deps, nodeId, protocol, round),
  );
}

async function reconcileNode(deps: AdoptionDeps, nodeId: string, protocol: NodeProtocol, round: Round): Promise<void> {
  const before = (await sandboxesOn(deps.db, nodeId, settledStates)).filter(sandbox => sandbox.nodeId === nodeId);
  await takeBackKnown(deps, nodeId, protocol);
  const setAside = new Set((await protocol.listSetAside()).map(({ sandboxId }) => sandboxId));
  const running = await protocol.list();
  const paused = await protocol.listPaused();
  // A sandbox being moved may be on both machines.
  const after = await sandboxesOn(deps.db, nodeId, sandboxStates);

  const present = new Set([...running, ...paused].map(sandbox => sandbox.executionId));
  const unchanged = new Set(after.map(keyOf));
  const lost = before.filter(
    row => !present.has(row.executionId) && !setAside.has(row.sandboxId) && unchanged.has(keyOf(row)) && !isStored(row),
  );
  const elsewhere = round.isSuspect && lost.length > 0 ? await presentAnywhere(deps.nodes) : new Set<string>();
  if (elsewhere) for (const row of lost) if (!elsewhere.has(row.sandboxId)) await forgetLost(deps, row);
  await adoptPresent(deps, after, present);
  await recordPaused(deps, after, paused);
  const runningExecutions = new Set(running.map(sandbox => sandbox.executionId));
  const adopted = after.filter(sandbox => sandbox.state === 'running' && runningExecutions.has(sandbox.executionId));
  if (round.isFirst) await forEachParallel(adopted, appliesAtOnce, sandbox => applyNetwork(deps, sandbox));
  const known = new Set(after.flatMap(sandbox => [sandbox.executionId, sandbox.nextExecutionId]));
  const unknown = [...running, ...paused].filter(sandbox => !known.has(sandbox.executionId));
  const left = await removeLeft(deps, nodeId, protocol, unknown, paused);
  await setAsideUnknown(
    deps.log,
    protocol,
    unknown.filter(sandbox => !left.has(sandbox.executionId)),
    round.isSuspect ? lacksAnswered : 'the database did not know it',
  );
}

/** Adopts what the directory does not know yet: after a start all of them, in portions, because a row may be long. */
async function adoptPresent(
  { db, directory }: Pick<AdoptionDeps, 'db' | 'directory'>,
  rows: readonly SandboxFacts[],
  present: ReadonlySet<string>,
): Promise<void> {
  const isPresent = ({ state, executionId }: SandboxFacts) => state !== 'starting' && present.has(executionId);
  const unknown = rows.filter(row => isPresent(row) && !directory.knows(row)).map(({ sandboxId }) => sandboxId);
  for (let first = 0; first < unknown.length; first += sandboxesAtOnce) {
    const part = await sandboxesById(db, new Set(unknown.slice(first, first + sandboxesAtOnce)));
    for (const sandbox of part) if (isPresent(sandbox)) directory.adopt(sandbox);
  }
}

/** `isSuspect`: the database went over to another server a short while ago, and may lack what was answered before. */
type Round = { isFirst: boolean; isSuspect: boolean };

const lacksAnswered =
  'the database does not know it since it went over to another server, which may lack what was answered before';

/**
 * The sandboxes that any machine has, as any execution: a row may be outdated, of a sandbox that was resumed or moved
 * since. Null where a machine can't be asked, as it may have any.
 */
async function presentAnywhere(nodes: Nodes): Promise<Set<string> | null> {
  if ((nodes.away?.() ?? []).length > 0) return null;
  const ids = new Set<string>();
  try {
    await forEachParallel(nodes.list(), nodesAtOnce, async ({ protocol }) => {
      const there = [await protocol.list(), await protocol.listPaused(), await protocol.listSetAside()].flat();
      for (const { sandboxId } of there) ids.add(sandboxId);
    });
  } catch {
    return null; // whatever it was: what that machine has is unknown, and the next round looks again
  }
  return ids;
}

/** The states in which a sandbox must be on its node, and no workflow works on it. */
const settledStates = ['running', 'paused'] as const;
const keyOf = ({ executionId, state }: SandboxFacts) => `${executionId} ${state}`;

/** The machine of a paused sandbox that is in the store may have nothing of it. */
const isStored = ({ state, durability }: SandboxFacts) => state === 'paused' && durability === 'cluster';

/**
 * Removes what is left here of paused sandboxes that went on elsewhere: the database knows that they are on another
 * machine, or have ended there, and that this very pause was in the store. Also removes executions that were taken back
 * while this machine was given up, and had been begun all the same. Answers the removed executions.
 */
async function removeLeft(
  { db, log }: Pick<AdoptionDeps, 'db' | 'log'>,
  nodeId: string,
  node: NodeProtocol,
  unknown: readonly ExecutionRef[],
  paused: readonly PausedSandbox[],
): Promise<Set<string>> {
  const still = new Set(paused.map(({ executionId }) => executionId));
  const candidates = unknown.filter(({ executionId }) => still.has(executionId));
  if (candidates.length === 0) return new Set();
  const ids = new Set(candidates.map(({ sandboxId }) => sandboxId));
  const there = await sandboxesElsewhere(db, [...ids], nodeId);
  const elsewhere = there.union(await endedElsewhere(db, [...ids], nodeId));
  const executions = candidates.map(({ executionId }) => executionId);
  const [stored, back] = [await onceStored(db, executions), await takenBack(db, executions)];
  const left = candidates.filter(
    ({ sandboxId, executionId }) => back.has(executionId) || (elsewhere.has(sandboxId) && stored.has(executionId)),
  );
  for (const { sandboxId, executionId } of left)
    await node.kill({ sandboxId, executionId }).catch((error: unknown) => {
      log.warn('what has stayed of a sandbox that is elsewhere is removed later', {
        sandboxId,
        error: messageOf(error),
      });
    });
  return new Set(left.map(({ executionId }) => executionId));
}

async function forgetLost({ clock, db, directory, log }: IncidentDeps, lost: SandboxFacts): Promise<void> {
  log.error('a sandbox is gone from its node', { sandboxId: lost.sandboxId, state: lost.state });
  if (await deleteLost(db, lost, clock())) directory.close(lost);
}

/**
 * Records pauses that nobody was told of: where a row says `running`, the node knows better; where it says `paused`
 * because the node was away for too long, the node knows what was kept.
 */
async function recordPaused(
  { busy, clock, db, directory }: { busy: BusyExecutions; clock: Clock; db: Db; directory: SandboxDirectory },
  rows: SandboxFacts[],
  paused: PausedSandbox[],
): Promise<void> {
  const pausedOf = new Map(paused.map(sandbox => [sandbox.executionId, sandbox]));
  for (const row of rows) {
    const known = pausedOf.get(row.executionId);
    if (known === undefined || busy.has(row.executionId)) continue;
    const { kept, agentUnresponsive = false } = known;
    if (row.state === 'paused' && (row.kept !== kept || row.agentUnresponsive !== agentUnresponsive))
      await correctKept(db, row, known);
    // Expiry ends a sandbox whose time is over too, unless it is to be kept then.
    if (row.state !== 'running' || (!row.autoPause && row.endAtUs <= clock())) continue;
    const recorded = await finishPause(db, row, known, clock());
    if (recorded) directory.apply(recorded);
  }
}

async function setAsideUnknown(log: Log, node: NodeProtocol, unknown: ExecutionRef[], reason: string): Promise<void> {
  await forEachParallel(unknown, endsAtOnce, async ({ sandboxId, executionId }) => {
    await node.setAside({ sandboxId, executionId }, reason).catch((error: unknown) => {
      log.error('a sandbox that the store does not know could not be set aside and runs on', {
        sandboxId,
        error: messageOf(error),
      });
    });
  });
}

/** A sandbox that was set aside under another database is restored once the right one is back. */
async function takeBackKnown({ db, log }: { db: Db; log: Log }, nodeId: string, node: NodeProtocol): Promise<void> {
  const setAside = await node.listSetAside();
  if (setAside.length === 0) return;
  // Read after the node's list, so that a row written meanwhile is found.
  const rows = (await sandboxesOn(db, nodeId, settledStates)).filter(sandbox => sandbox.nodeId === nodeId);
  const executions = new Map(rows.map(row => [row.sandboxId, row.executionId]));
  for (const { sandboxId, known } of setAside) {
    // A sandbox that merely could not be taken over can't be given back: its node has to start again.
    if (known && executions.get(sandboxId) === known.executionId)
      await node
        .takeBack({ sandboxId, executionId: known.executionId })
        .catch((error: unknown) => log.warn('a sandbox stays set aside', { sandboxId, error: messageOf(error) }));
  }
}

/** A workflow on the sandbox may take a while to learn that it is paused. */
const busyLooks = { everyMs: 250, max: 40 } as const;

/** Records that a sandbox has lost its memory, and is paused with its files. */
export async function recordMemoryLost(
  deps: IncidentDeps & { busy: BusyExecutions },
  node: Pick<NodeProtocol, 'listPaused'>,
  { sandboxId, executionId }: ExecutionRef,
): Promise<void> {
  deps.log.warn('a sandbox has lost its memory, and is paused with its files', { sandboxId });
  // Otherwise adoption notices it later.
  for (let looks = 0; deps.busy.has(executionId) && looks < busyLooks.max; looks++) await Bun.sleep(busyLooks.everyMs);
  const paused = (await node.listPaused()).filter(known => known.executionId === executionId);
  await recordPaused(deps, await sandboxesById(deps.db, new Set([sandboxId])), paused);
}

/** Any incident except the loss of memory. */
type OtherIncident = SandboxIncident & { reason: Exclude<SandboxIncident['reason'], 'memory_lost'> };

/** Records an incident of a sandbox. A kill under way goes on: it removes the row when it is done. */
export async function recordIncident(deps: IncidentDeps, incident: OtherIncident): Promise<void> {
  const { sandboxId, reason } = incident;
  if (reason === 'disk_failed') {
    deps.log.warn('the disk of a sandbox has failed', { sandboxId });
    await recordDiskFailed(deps.db, incident, deps.clock());
    return;
  }
  deps.log.info('a sandbox ended by itself', { sandboxId, reason });
  await forgetSandbox(deps, incident, reason === 'out_of_memory' ? 'out_of_memory' : 'exited');
}

async function forgetSandbox(
  { clock, db, directory }: { clock: Clock; db: Db; directory: SandboxDirectory },
  target: { sandboxId: string; executionId: string },
  reason: KillReason,
): Promise<void> {
  directory.close(target);
  await deleteSandbox(db, target, ['starting', 'running', 'snapshotting', 'pausing', 'moving'], {
    reason,
    atUs: clock(),
  });
}
