import { AtollError, messageOf } from '../../../base/error.ts';
import type { Clock } from '../../../base/clock.ts';
import { decrypt, encrypt, encryptionKey } from '../../../base/crypto/encryption.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import type { BuildProgress, BuildProtocol, StartBuild, StepOutcome } from '../../../protocol/build.ts';
import type { UploadRef } from '../../../protocol/upload.ts';
import { storedLayers } from '../../blob/store/blobs.ts';
import type { SharedUploads } from '../../blob/rules/uploads.ts';
import { moveBuildOn, placeOfBuild, putPlaceOfBuild, runningBuildsByNode } from '../../build/store/node.ts';
import { buildLogLength } from '../../build/store/log.ts';
import { findStep, forgetStep, putSteps } from '../../build/store/steps.ts';
import type { Db } from '../../database/db.ts';
import { drainingNodes } from '../../placement/node-status.ts';
import { isNodeLost } from '../store/nodes.ts';
import type { KnownMachine, Machines } from './machines.ts';

/** What builds on the machines of a cluster need. */
type BuilderDeps = { machines: Machines; db: Db; clock: Clock; seed: Uint8Array; log: Log; uploads: SharedUploads };

const planPurpose = 'plans of builds';
/** How often a build whose machine was lost is begun on another one. */
const retriesMax = 1;

type Place = NonNullable<Awaited<ReturnType<typeof placeOfBuild>>>;

/**
 * Builds on the machines of a cluster. Each is on one machine, which the database names together with what the machine
 * was told. A build whose machine is lost is begun once more on another one.
 */
export function clusterBuilder(deps: BuilderDeps): BuildProtocol {
  const { machines, db } = deps;
  const builderOf = ({ nodeId }: Place) => machines.known(nodeId).machine.builds;
  /** Builds whose machine is still getting what it needs, and does not know them yet. */
  const starting = new Set<string>();
  return {
    readDockerfile: text => anyOf(machines).machine.builds.readDockerfile(text),
    async start(request) {
      const machine = await placeBuild(deps, request, null);
      const { nodeId } = machine.node;
      const sealedPlan = encrypt(encryptionKey(deps.seed, planPurpose), JSON.stringify(request), request.buildId);
      starting.add(request.buildId);
      try {
        await putPlaceOfBuild(db, request.buildId, { nodeId, sealedPlan });
        await startOn(deps, machine, request);
      } finally {
        starting.delete(request.buildId);
      }
    },
    async progress(buildId, after, waitMs) {
      if (starting.has(buildId)) {
        await Bun.sleep(waitMs);
        return { entries: [], next: after };
      }
      const place = await placeOfBuild(db, buildId);
      if (!place) throw new AtollError('not_found', `no machine was told of build ${buildId}`);
      try {
        const { made, ...progress } = await builderOf(place).progress(
          buildId,
          Math.max(0, after - place.logOffset),
          waitMs,
        );
        if (progress.question !== undefined) await answer(deps, place, buildId, progress.question);
        if (made) await putSteps(db, place.teamId, made, deps.clock());
        return { ...progress, next: progress.next + place.logOffset };
      } catch (error) {
        const isGone = error instanceof AtollError && error.code === 'not_found';
        if (!isGone && !(await isNodeLost(db, place.nodeId))) throw error;
        return await goOnElsewhere(deps, place, { buildId, after });
      }
    },
    async cancel(buildId, reason) {
      const place = await placeOfBuild(db, buildId);
      if (place) await builderOf(place).cancel(buildId, reason);
    },
    async forget(buildId) {
      const place = await placeOfBuild(db, buildId);
      // A lost machine has forgotten it already, or does so when its process ends.
      if (place && !(await isNodeLost(db, place.nodeId))) await builderOf(place).forget(buildId);
    },
    async collect(keep) {
      const stored = await storedLayers(db);
      const replaceable = keep.filter(digest => stored.has(digest));
      const all = await Promise.all(machines.usable().map(({ machine }) => machine.builds.collect(keep, replaceable)));
      const sum = (of: (freed: (typeof all)[number]) => number) => all.reduce((total, freed) => total + of(freed), 0);
      return {
        layersDeleted: sum(freed => freed.layersDeleted),
        filesDeleted: sum(freed => freed.filesDeleted),
        bytesFreed: sum(freed => freed.bytesFreed),
      };
    },
    async layerBytes(digests) {
      // What a machine that does not answer has, another one may have too.
      const all = await Promise.all(
        machines.usable().map(({ machine }) => machine.builds.layerBytes(digests).catch(() => ({}))),
      );
      return Object.assign({}, ...all) as Record<string, number>;
    },
  };
}

/** Starts a build on a machine, after bringing everything that it starts from. */
async function startOn({ machines, uploads }: BuilderDeps, known: KnownMachine, request: StartBuild): Promise<void> {
  await machines.layers.ensure(known.node.nodeId, layersOf(request));
  await uploads.ensure(known, uploadsOf(request));
  await known.machine.builds.start({ ...request, sharesSteps: true });
}

/** Begins a build once more, because its machine is lost; where that can't be, the answer ends the build. */
async function goOnElsewhere(
  deps: BuilderDeps,
  place: Place,
  { buildId, after }: { buildId: string; after: number },
): Promise<BuildProgress> {
  const { db, clock, seed, log } = deps;
  const lost = `The machine that built it (node ${place.nodeId}) was lost`;
  const failed = (why: string): BuildProgress => ({
    entries: [],
    next: after,
    result: { status: 'error', message: `${lost}${why}; start it again` },
  });
  if (place.sealedPlan === null || place.nodesLost >= retriesMax) return failed('');
  const request = JSON.parse(decrypt(encryptionKey(seed, planPurpose), place.sealedPlan, buildId)) as StartBuild;
  try {
    const machine = await placeBuild(deps, request, place.nodeId);
    const to = machine.node.nodeId;
    const message = `${lost}: it is built once more, by node ${to}`;
    log.warn('a build begins once more, as its machine is lost', { buildId, lost: place.nodeId, nodeId: to });
    const notice = { timestampMs: Math.floor(clock() / 1000), level: 'warn', message } as const;
    // Whichever process has done so, the next request uses what the row says then.
    if (await moveBuildOn(db, { buildId, from: place.nodeId, to }, notice)) await startOn(deps, machine, request);
  } catch (error) {
    return failed(`, and it could not be begun on another one (${messageOf(error)})`);
  }
  return { entries: [], next: await buildLogLength(db, buildId) };
}

/**
 * Answers a build's question: the step that another machine has carried out, with its layer brought to the build's
 * machine.
 */
async function answer(deps: BuilderDeps, place: Place, buildId: string, key: string): Promise<void> {
  const { machines, db, clock, log } = deps;
  const { builds } = machines.known(place.nodeId).machine;
  const { teamId } = place;
  const known = await findStep(db, { teamId, key }, clock());
  let outcome: StepOutcome | null = known;
  if (known && known.layer !== null)
    try {
      await machines.layers.ensure(place.nodeId, [known.layer]);
    } catch (error) {
      log.info('a step is carried out again, as its layer is nowhere in reach', { buildId, error: messageOf(error) });
      await forgetStep(db, { teamId, key });
      outcome = null;
    }
  await builds.answer(buildId, key, outcome);
}

/**
 * Prefers machines that have the layers, and among these the one with the fewest builds; uses a lost one only where its
 * process was lost and there is no other.
 */
async function placeBuild(
  { machines, db }: BuilderDeps,
  request: StartBuild,
  lost: string | null,
): Promise<KnownMachine> {
  const closed = await drainingNodes(db);
  const others = machines.usable().filter(({ node }) => node.nodeId !== lost);
  const usable = others.length > 0 ? others : machines.usable();
  const open = usable.filter(({ node }) => !closed.has(node.nodeId));
  const [holders, running] = await Promise.all([machines.layers.holders(layersOf(request)), runningBuildsByNode(db)]);
  const cost = ({ node: { nodeId } }: KnownMachine) => (holders.includes(nodeId) ? 0 : 1) + (running.get(nodeId) ?? 0);
  const [best] = open.toSorted((a, b) => cost(a) - cost(b));
  return best ?? firstOf(usable);
}

const anyOf = (machines: Machines) => firstOf(machines.usable());

function firstOf([first]: readonly KnownMachine[]): KnownMachine {
  if (first) return first;
  throw new AtollError('unavailable', 'No machine of the cluster is in reach now; nothing was changed');
}

/** The layers that a build starts from. */
function layersOf({ source }: StartBuild): string[] {
  if (source.kind === 'state') return source.state.layers;
  return source.kind === 'dockerfile' ? Object.values(source.templates).flatMap(({ layers }) => layers) : [];
}

/** The uploaded archives that its steps copy. */
function uploadsOf({ teamId, steps }: StartBuild): UploadRef[] {
  const hashes = new Set(steps.flatMap(({ filesHash }) => (filesHash === undefined ? [] : [filesHash])));
  return [...hashes].map(hash => ({ teamId, hash }));
}
