import { AtollError } from '../../../src/base/error.ts';
import { SingleFlight } from '../../../src/base/concurrency/single-flight.ts';
import { silentLog } from '../../../src/base/telemetry/log.ts';
import type { BlobStore } from '../../../src/protocol/blob.ts';
import type { ClusterLinks } from '../../../src/protocol/cluster.ts';
import { collectBlobs, giveUpUploads } from '../../../src/api/blob/reconcilers/collect.ts';
import { ClusterStore } from '../../../src/api/blob/rules/cluster-store.ts';
import { DurablePauses } from '../../../src/api/blob/rules/pauses.ts';
import { reconcileMachines } from '../../../src/api/cluster/reconcilers/beat.ts';
import { Machines } from '../../../src/api/cluster/rules/machines.ts';
import type { Db } from '../../../src/api/database/db.ts';
import type { SandboxListener } from '../../../src/api/database/postgres/watch.ts';
import { StartCounts } from '../../../src/api/metrics/start-counts.ts';
import { CreateCounts } from '../../../src/api/placement/create-counts.ts';
import { createMeasures } from '../../../src/api/metrics/measures.ts';
import { drains } from '../../../src/api/operator/reconcilers/drains.ts';
import { startReplica } from '../../../src/api/replica/rules/replica.ts';
import { SandboxDirectory } from '../../../src/api/sandbox/directory/directory.ts';
import { reconcileNodes } from '../../../src/api/sandbox/reconcilers/adoption.ts';
import { followChanges } from '../../../src/api/sandbox/reconcilers/changes.ts';
import { expiries } from '../../../src/api/sandbox/reconcilers/expiry.ts';
import { reconcileLeftovers } from '../../../src/api/sandbox/reconcilers/leftovers.ts';
import { BusyExecutions } from '../../../src/api/sandbox/rules/busy.ts';
import { limitsFrom } from '../../../src/api/team/rules/limits.ts';
import { carriedKey, type SimMachine } from './machine.ts';
import { Process, type World } from './world.ts';

/** The real parts of a control process that decide about sandboxes. */
export type Control = { process: Process; parts: Awaited<ReturnType<typeof partsOf>> };

const epochUs = 1_800_000_000_000_000;
/** How wrong a control process may be about the database's time. */
const clockWrongMsMax = 200;
/** How long a machine serves without control, seconds. */
const isolationSeconds = 5;

/** Intervals of its loops, ms: longer than the real ones, in the same order of size. */
const every = {
  beat: 5000,
  machines: 3000,
  leftovers: 2500,
  adoption: 8000,
  expiry: 5000,
  drains: 3000,
  store: 15_000,
};

/** What is in transit or in the store. */
type Objects = Map<string, unknown>;

/** A descriptor gives its number. */
function linksOf(world: World, machines: readonly SimMachine[], objects: Objects): ClusterLinks {
  const { current } = world;
  return {
    connect(nodeId: string) {
      const machine = machines.find(one => one.nodeId === nodeId);
      if (!machine) throw new Error(`no machine ${nodeId}`);
      return machine.reachedFrom(current);
    },
    async *read(descriptor: number) {
      yield new TextEncoder().encode(`${descriptor}`);
    },
    async write(descriptor: number, bytes: AsyncIterable<Uint8Array>) {
      for await (const part of bytes) {
        await world.sleep(world.between(20, 400));
        if (world.chance(0.05)) throw new AtollError('unavailable', 'the connection was lost');
        objects.set(carriedKey(descriptor), objects.get(carriedKey(Number(new TextDecoder().decode(part)))));
      }
    },
  } as unknown as ClusterLinks;
}

async function partsOf(world: World, name: string, db: Db, machines: readonly SimMachine[], objects: Objects) {
  // The database's time, as known to a process that has asked for it.
  const wrongMs = world.between(-clockWrongMsMax, clockWrongMsMax);
  const clock = () => epochUs + (world.nowMs + wrongMs) * 1000;
  const log = silentLog;
  const seed = new Uint8Array(32).fill(7);
  const replica = await startReplica({ db, clock }, { place: name });
  const links = linksOf(world, machines, objects);
  const nodes = new Machines(links, () => ({}) as never, log);
  const check = async () => {};
  const store = await ClusterStore.open({ blobs: urls, db, clock, links, replicaId: replica.replicaId, log, check });
  return {
    db,
    clock,
    log,
    seed,
    replica,
    store,
    nodes,
    machines: nodes,
    authority: {} as never,
    identity: {} as never,
    isolationSeconds,
    busy: new BusyExecutions(replica.replicaId),
    directory: new SandboxDirectory(() => ({ accessToken: null, trafficToken: null })),
    durablePauses: new DurablePauses({ db, clock, store, machines: nodes, seed }),
    measures: createMeasures(),
    limitsOf: limitsFrom({}),
    resuming: new SingleFlight() as never,
    startCounts: new StartCounts(),
    createCounts: new CreateCounts(),
  };
}

/** What machines read and write by URL; control itself only names them. */
const urls: BlobStore = {
  place: 'simulated',
  put: async () => {},
  get: async () => new Uint8Array(),
  head: async () => 1,
  remove: async () => {},
  // Each blob is a part of one byte.
  async *list(prefix) {
    yield { key: `${prefix}00000`, bytes: 1, changedAtMs: 0 };
  },
  presign: key => key,
};

/** Starts a control process, with the real one's loops for sandboxes and machines. */
export async function startControl(
  world: World,
  name: string,
  db: Db,
  machines: readonly SimMachine[],
  objects: Objects,
): Promise<Control> {
  const process = new Process(name);
  return world.as(process, async () => {
    const parts = await partsOf(world, name, db, machines, objects);
    const heard: SandboxListener[] = [];
    const emptied = drains(parts);
    const changes = {
      onSandboxChanges(listener: SandboxListener) {
        heard.push(listener);
        return () => {};
      },
    };
    // Everything is read again repeatedly below, by the world's clock.
    followChanges(parts, changes, () => () => {});
    const loop = (ms: number, work: () => Promise<void> | void) =>
      void (async () => {
        for (;;) {
          // A failure is retried in the next round, as in the real loops.
          await Promise.resolve(work()).catch(() => {});
          await world.sleep(ms);
        }
      })();
    loop(every.beat, () => parts.replica.beat());
    loop(every.machines, () => reconcileMachines(parts));
    loop(every.leftovers, () => reconcileLeftovers(parts));
    loop(every.adoption, () => reconcileNodes(parts));
    const ends = expiries(parts);
    loop(every.expiry, ends.round);
    loop(every.drains, () => emptied.round());
    loop(every.store, () => giveUpUploads(parts).then(() => collectBlobs(parts)));
    loop(2500, () => heard.forEach(listener => listener(null)));
    return { process, parts };
  });
}
