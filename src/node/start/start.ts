import { composeBuilds } from '../builds/compose.ts';
import { forgetOtherAgents } from '../agent-client/copy.ts';
import { claimInstallation } from '../installation.ts';
import { layoutOf } from '../layout.ts';
import { startHistory } from '../metrics/history.ts';
import { startRefreshing } from '../numbers/refresh.ts';
import { observeMachine } from '../metrics/machine.ts';
import type { Node, NodeOptions } from './options.ts';
import { openRooms } from './open-rooms.ts';
import { protocolOf } from '../protocol.ts';
import { adoptSandboxes, releaseLeftover } from '../sandbox/adopt.ts';
import { findCheckpointSupport } from '../sandbox/find-checkpoint-support.ts';
import { keepSandbox } from '../sandbox/keep/keep-sandbox.ts';
import { discardMemory } from '../sandbox/keep/memory-files.ts';
import { killSandbox } from '../sandbox/lifecycle/end.ts';
import { dropAllFrozen } from '../sandbox/lifecycle/frozen.ts';
import { removeSetAside } from '../sandbox/lifecycle/set-aside.ts';
import { agentsInUse } from '../sandbox/snapshot/agents-in-use.ts';
import { forgetPartialSnapshots } from '../sandbox/snapshot/snapshot-store.ts';
import { admit } from '../sandbox/start/admission.ts';
import { createPool, type Pool } from '../sandbox/start/pool.ts';
import { startAgain } from '../sandbox/start/start-again.ts';
import { startNew } from '../sandbox/start/start-new.ts';
import { thaw } from '../sandbox/start/thaw.ts';

type Rooms = Awaited<ReturnType<typeof openRooms>>;

const defaultMetricsHours = 24;

/** Starts the node of this machine: adopts its sandboxes, removes leftovers, and puts the packet rules in place. */
export async function startNode(options: NodeOptions): Promise<Node> {
  const installation = claimInstallation(options.dataDir);
  // A start that fails leaves no process behind and gives the directory back.
  await using undo = new AsyncDisposableStack();
  undo.defer(() => installation.unlock());
  const layout = layoutOf(options.dataDir, installation.runDir, installation.number);
  const rooms = await openRooms(options, layout, undo);
  const { sandboxes, egress, drivers } = rooms;
  const found = await adoptSandboxes(rooms);
  forgetPartialSnapshots(layout);
  forgetOtherAgents(layout.agents, [rooms.agentDir, ...agentsInUse(sandboxes, layout)]);
  await egress.install();
  const { size, resources } = options.pool;
  const checkpoints = await findCheckpointSupport(rooms, {
    criuDir: options.criuDir,
    cgroups: rooms.cgroups,
    driver: drivers.withCheckpoints,
    resources,
  });
  const driver = drivers.default;
  const pool =
    size > 0 && driver.capabilities.adoptsRoot
      ? createPool(rooms, { ...rooms, size, resources, driver, awaited: () => sandboxes.awaited() })
      : undefined;
  const started = { ...rooms, checkpoints, pool };
  const lifecycle = {
    ...started,
    admit: () => admit({ space: rooms.space, freeMemory: () => dropAllFrozen(rooms) }),
    startNew: startNew.bind(null, started),
    startAgain: startAgain.bind(null, started),
    thaw: thaw.bind(null, started),
    keep: keepSandbox.bind(null, started),
    discardMemory: (sandboxId: string) => discardMemory(rooms.records, sandboxId, rooms.log),
    releaseLeftover: releaseLeftover.bind(null, rooms),
  };
  const builds = composeBuilds(started, options.builds);
  const history = startHistory(rooms, options.metricsHours ?? defaultMetricsHours);
  const machine = observeMachine(layout.data);
  const refreshing = startRefreshing(rooms);
  undo.move();
  const stop = () => stopRooms(rooms, { loops: [history, machine, refreshing], builds, pool, installation });
  return {
    protocol: protocolOf({ ...lifecycle, nodeId: options.nodeId, history, machine }),
    builds,
    installation: layout.installation,
    helperPid: rooms.helper.pid,
    runDir: layout.run,
    layers: rooms.layers,
    found,
    stop,
    async down({ all } = { all: true }) {
      const every = [...sandboxes.running(), ...(all ? sandboxes.paused() : [])].map(
        ({ record: { sandboxId, executionId } }) => ({ sandboxId, executionId }),
      );
      const unreadable = all ? [...sandboxes.all()].filter(({ kind }) => kind === 'unreadable') : [];
      // Registered last is done first. What one step can't do is told in the end; the others are done all the same.
      const steps = new AsyncDisposableStack();
      steps.defer(stop);
      steps.defer(() => egress.down());
      steps.defer(() => drivers.retire());
      steps.defer(() => rooms.cleanups.stop());
      steps.defer(() => dropAllFrozen(rooms));
      steps.defer(async () => void (await Promise.all(every.map(target => killSandbox(rooms, target)))));
      for (const { sandboxId } of unreadable) steps.defer(() => removeSetAside(lifecycle, sandboxId));
      steps.defer(async () => pool?.stop());
      steps.defer(() => builds.stop());
      await steps.disposeAsync();
      // Only where nothing is left: who gets the number next would find it.
      installation.surrender();
      return every;
    },
  };
}

/** Ends what runs in this process. Sandboxes run on, and everything of theirs stays. */
async function stopRooms(
  rooms: Rooms,
  parts: {
    loops: { stop(): void }[];
    builds: { stop(): Promise<void> };
    pool: Pool | undefined;
    installation: { unlock(): void };
  },
): Promise<void> {
  rooms.sandboxes.close();
  for (const loop of parts.loops) loop.stop();
  await rooms.space.stop();
  // Without its helper the node can remove nothing: what is left is the next start's.
  if (rooms.helper.alive()) {
    await parts.builds.stop();
    await parts.pool?.stop();
    await rooms.cleanups.stop();
  }
  await rooms.builder.stop();
  await rooms.egress.stop();
  rooms.volumes.stop();
  await rooms.logs.close();
  await rooms.helper.stop();
  parts.installation.unlock();
}
