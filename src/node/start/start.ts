import { join } from 'node:path';
import { composeBuilds } from '../builds/compose.ts';
import { forgetOtherAgents } from '../agent-client/copy.ts';
import { claimInstallation, type Installation } from '../installation.ts';
import { layoutOf, slotsMax } from '../layout.ts';
import { startHistory } from '../metrics/history.ts';
import { startRefreshing } from '../numbers/refresh.ts';
import { observeMachine } from '../metrics/machine.ts';
import type { CreateSandbox, ExecutionRef, ResumeSandbox } from '../../protocol/node.ts';
import type { Node, NodeOptions } from './options.ts';
import { openRooms } from './open-rooms.ts';
import { keepPace } from './pace.ts';
import { protocolOf } from '../protocol.ts';
import { adoptSandboxes } from '../sandbox/adopt.ts';
import { readAgents } from '../sandbox/carry/agents.ts';
import { createCarrier } from '../sandbox/carry/carrier.ts';
import { createDraftCarrier } from '../sandbox/carry/draft-carrier.ts';
import { Drafts } from '../sandbox/carry/drafts.ts';
import { createSnapshotCarrier } from '../sandbox/carry/snapshot-carrier.ts';
import { createVolumeCarrier } from '../sandbox/carry/volume-carrier.ts';
import { memoryFactsOf } from '../sandbox/carry/memory-facts.ts';
import { findCheckpointSupport } from '../sandbox/find-checkpoint-support.ts';
import type { CheckpointSupport } from '../sandbox/keep/checkpoint-support.ts';
import { keepSandbox } from '../sandbox/keep/keep-sandbox.ts';
import { discardMemory, memoryOf } from '../sandbox/keep/memory-files.ts';
import { killSandbox } from '../sandbox/lifecycle/end.ts';
import { dropAllFrozen } from '../sandbox/lifecycle/frozen.ts';
import { removeSetAside } from '../sandbox/lifecycle/set-aside.ts';
import type { PausedRecord } from '../sandbox/records/record.ts';
import { agentsInUse } from '../sandbox/snapshot/agents-in-use.ts';
import { forgetPartialSnapshots, snapshotOf } from '../sandbox/snapshot/snapshot-store.ts';
import { type Admission, createAdmission, leastNeed, type Need, needOf } from '../sandbox/start/admission.ts';
import { createPool, type Pool } from '../sandbox/start/ahead/pool.ts';
import { createRestoredAhead, type RestoredAhead } from '../sandbox/start/ahead/restored-ahead.ts';
import { type Beginning, standbyOf } from '../sandbox/start/restored-standby.ts';
import { startAgain } from '../sandbox/start/start-again.ts';
import { beginningOf, startNew } from '../sandbox/start/start-new.ts';
import { thaw } from '../sandbox/start/thaw.ts';

type Rooms = Awaited<ReturnType<typeof openRooms>>;

const defaultMetricsHours = 24;
/** How many restored sandboxes may wait for each standby sandbox of the pool: they have much more memory. */
const restoredShare = 1 / 2;
/** Sandboxes that are restored ahead leave this many slots to creates. */
const slotsLeft = 64;

/**
 * Starts the node of this machine: adopts its sandboxes, removes leftovers, and puts the packet rules in place.
 * `installation`: the claim of the data directory, which ends with the node.
 */
export async function startNode(
  options: NodeOptions,
  installation: Installation = claimInstallation(options.dataDir),
): Promise<Node> {
  // A failed start leaves no process behind and gives the directory back.
  await using undo = new AsyncDisposableStack();
  undo.defer(() => installation.unlock());
  const layout = layoutOf(options.dataDir, installation.runDir, installation.number);
  const rooms = await openRooms(options, layout, undo);
  const { sandboxes, egress, drivers } = rooms;
  const found = await adoptSandboxes(rooms);
  forgetPartialSnapshots(layout);
  forgetOtherAgents(layout.agents, [rooms.agentDir, ...agentsInUse(sandboxes, layout)]);
  const checkpoints = await letSandboxesOut(rooms, options);
  const { admission, ...ahead } = standbys({ ...rooms, checkpoints }, options);
  const started = { ...rooms, ...ahead, checkpoints, requireLease: options.requireLease ?? (() => {}) };
  const lifecycle = {
    ...started,
    ...admissions(started, admission),
    startNew: startNew.bind(null, started),
    startAgain: startAgain.bind(null, started),
    thaw: thaw.bind(null, started),
    keep: keepSandbox.bind(null, started),
    discardMemory: (sandboxId: string) => discardMemory(rooms.records, sandboxId, rooms.log),
  };
  const carried = await carriage(rooms, checkpoints);
  const builds = composeBuilds(started, options.builds);
  const history = startHistory(rooms, options.metricsHours ?? defaultMetricsHours);
  const machine = observeMachine(layout.data);
  const refreshing = startRefreshing(rooms);
  const pacing = keepPace(rooms, options.diskWriteBytesPerSecond);
  undo.move();
  const stop = () => stopRooms(rooms, { loops: [history, machine, refreshing, pacing], builds, ahead, installation });
  return {
    protocol: protocolOf({ ...lifecycle, nodeId: options.nodeId, history, machine, ...carried }),
    builds,
    pauses: carried.pauses,
    drafts: carried.drafts,
    snapshots: carried.snapshots,
    volumeCopies: createVolumeCarrier(rooms),
    installation: layout.installation,
    helperPid: rooms.helper.pid,
    runDir: layout.run,
    layers: rooms.layers,
    space: rooms.space,
    found,
    stop,
    async down({ all } = { all: true }) {
      const every = [...sandboxes.running(), ...(all ? sandboxes.paused() : [])].map(refOf);
      const unreadable = all ? [...sandboxes.all()].filter(({ kind }) => kind === 'unreadable') : [];
      // The last step registered comes first. Failures of a step are reported at the end; the other steps are done all
      // the same.
      const steps = new AsyncDisposableStack();
      steps.defer(stop);
      steps.defer(() => egress.down());
      steps.defer(() => drivers.retire());
      steps.defer(() => rooms.cleanups.stop());
      steps.defer(() => dropAllFrozen(rooms));
      steps.defer(async () => void (await Promise.all(every.map(target => killSandbox(rooms, target)))));
      for (const { sandboxId } of unreadable) steps.defer(() => removeSetAside(rooms, sandboxId));
      steps.defer(() => stopAhead(ahead));
      steps.defer(() => builds.stop());
      await steps.disposeAsync();
      // Only if nothing is left: the next owner of the number would find the rest.
      installation.release();
      return every;
    },
  };
}

const refOf = ({ record: { sandboxId, executionId } }: { record: ExecutionRef }): ExecutionRef => ({
  sandboxId,
  executionId,
});

/** Sandboxes that wait for creates: started ones and restored ones. */
type Ahead = { pool: Pool | undefined; restoredAhead: RestoredAhead | undefined };

/** Makes the sandboxes that wait for creates, and the check whether there is room for them and for others. */
function standbys(
  rooms: Rooms & { checkpoints: CheckpointSupport },
  { pool: { size, roomySize = 0, resources } }: Pick<NodeOptions, 'pool'>,
): Ahead & { admission: Admission } {
  const { space, sandboxes, slots, layout, drivers } = rooms;
  const awaited = () => sandboxes.awaited();
  const driver = drivers.default;
  const admission = createAdmission({
    space,
    freeMemory: async () => void (await Promise.all([dropAllFrozen(rooms), restoredAhead?.drop(), pool?.shrink()])),
  });
  const isRoomy = (need: Need, more: number) => admission.isRoomy(need) && slots.used() + more <= slotsMax - slotsLeft;
  const needOfBeginning = ({ snapshotId }: Beginning) =>
    snapshotId === null ? leastNeed : needOf(snapshotOf(layout, snapshotId));
  const restoredAhead =
    size > 0
      ? createRestoredAhead({
          ...rooms,
          size: Math.ceil(size * restoredShare),
          restore: beginning => standbyOf(rooms, beginning),
          isRoomy: more => (more ? isRoomy(needOfBeginning(more), 1) : isRoomy(leastNeed, 0)),
          admit: beginning => admission.admitAhead(needOfBeginning(beginning)),
          awaited,
        })
      : undefined;
  const pool =
    size > 0 && driver.capabilities.adoptsRoot
      ? createPool(rooms, {
          ...rooms,
          size,
          roomySize,
          resources,
          driver,
          isRoomy: () => isRoomy(leastNeed, 1),
          awaited,
        })
      : undefined;
  return { pool, restoredAhead, admission };
}

async function stopAhead({ pool, restoredAhead }: Ahead): Promise<void> {
  await Promise.all([pool?.stop(), restoredAhead?.stop()]);
}

/** The checks that refuse sandboxes without room: for new ones and for resumed ones. */
function admissions(
  rooms: Rooms & Pick<Ahead, 'restoredAhead'> & { checkpoints: CheckpointSupport },
  { admit }: Admission,
) {
  return {
    async admitNew(request: CreateSandbox) {
      const beginning = beginningOf(rooms, request);
      if (!beginning) return admit(leastNeed);
      using undo = new DisposableStack();
      const waits = request.volumes?.length ? undefined : rooms.restoredAhead?.countOn(beginning);
      if (waits) undo.use(waits);
      undo.use(await admit(waits ? leastNeed : needOf(snapshotOf(rooms.layout, beginning.snapshotId))));
      return undo.move();
    },
    async admitAgain({ sandboxId, kept }: PausedRecord, { memory }: ResumeSandbox) {
      return admit(memory && kept === 'memory' ? needOf(memoryOf(rooms.records, sandboxId)) : leastNeed);
    },
  };
}

/** Makes what carries paused sandboxes and snapshots, and the facts that arriving ones have to fit. */
async function carriage(rooms: Rooms, checkpoints: CheckpointSupport) {
  const { layout, agentDir } = rooms;
  const agents = await readAgents(layout.agents, agentDir, join(layout.data, 'agent-digest'));
  const memoryFacts = memoryFactsOf(checkpoints, agents.present);
  const parts = { ...rooms, agents, memoryFacts, checkpoints, drafts: new Drafts(join(layout.data, 'drafts')) };
  const pauses = createCarrier(parts);
  return {
    memoryFacts,
    earlierAgents: agents.earlier,
    pauses,
    drafts: createDraftCarrier(parts, pauses),
    snapshots: createSnapshotCarrier(parts),
  };
}

/** Puts the packet rules in place, and meanwhile finds out whether sandboxes can be checkpointed. */
async function letSandboxesOut(rooms: Rooms, { criuDir, pool }: NodeOptions): Promise<CheckpointSupport> {
  const installed = rooms.egress.install();
  const { cgroups, drivers } = rooms;
  const asked = { criuDir, cgroups, driver: drivers.withCheckpoints, resources: pool.resources, installed };
  const [checkpoints] = await Promise.all([findCheckpointSupport(rooms, asked), installed]);
  return checkpoints;
}

/** Ends what runs in this process. Sandboxes run on, and everything of theirs stays. */
async function stopRooms(
  rooms: Rooms,
  parts: {
    loops: { stop(): void }[];
    builds: { stop(): Promise<void> };
    ahead: Ahead;
    installation: { unlock(): void };
  },
): Promise<void> {
  rooms.sandboxes.close();
  for (const loop of parts.loops) loop.stop();
  await rooms.space.stop();
  // Without its helper the node can remove nothing: the next start removes the rest.
  if (rooms.helper.alive()) {
    await parts.builds.stop();
    await stopAhead(parts.ahead);
    await rooms.cleanups.stop();
  }
  await rooms.builder.stop();
  await rooms.egress.stop();
  rooms.volumes.stop();
  await rooms.logs.close();
  await rooms.helper.stop();
  parts.installation.unlock();
}
