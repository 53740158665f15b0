import { AtollError, causesOf } from '../../../base/error.ts';
import { forEachParallel } from '../../../base/concurrency/parallel.ts';
import { newSandboxId, newUuid } from '../../../base/id.ts';
import type { NodeProtocol, TemplateImage } from '../../../protocol/node.ts';
import type { DurableSnapshots } from '../../blob/rules/snapshots.ts';
import { placeElsewhere } from '../../placement/elsewhere.ts';
import { nodeFull } from '../../../protocol/no-room.ts';
import { createSandboxWorkflow } from './create/steps.ts';
import { requireMemory } from '../rules/memory.ts';
import { explainFailedStart, requireSecure } from './create/create.ts';
import { sandboxFor } from '../rules/find.ts';
import { bootConfigOf, takeSnapshot } from '../../snapshot/workflows/take.ts';
import { checkTimeout } from '../rules/timeout.ts';
import type { SandboxRecord } from '../record.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { CreateWork } from './create/steps.ts';
import type { SnapshotDeps } from '../../snapshot/workflows/take.ts';
import type { Clock } from '../../../base/clock.ts';

/** Dependencies of forking a sandbox. */
export type ForkDeps = CreateWork &
  SnapshotDeps & {
    requireSecure: boolean;
    /** Null: memory stays on its machine. */
    durableSnapshots: DurableSnapshots | null;
  };

/** Forks started at a time: each keeps a core busy for a moment. */
const forksAtOnce = 4;
/** A client waits 60 s by default; forks that have not started by then are not started at all. */
const forkDeadlineMs = 55_000;

/** A running fork, or why there is none. */
export type ForkResult = { sandbox: SandboxRecord } | { error: AtollError };

/**
 * Makes `count` sandboxes that start in the present state of a running one, with its processes, memory and files. The
 * source stands still briefly and runs on. Each fork succeeds or fails by itself; the order means nothing. Errors:
 * `invalid`, `not_found`, `conflict`, `precondition` where memory can't be kept, `no_space`. Then nothing was made.
 */
export async function forkSandbox(
  deps: ForkDeps,
  team: TeamRecord,
  sandboxId: string,
  options: { seconds: number; count: number },
  clientSignal: AbortSignal,
): Promise<ForkResult[]> {
  const { seconds, count } = options;
  checkTimeout(deps.limitsOf, team, seconds);
  const limit = deps.limitsOf(team).concurrentSandboxes;
  if (count >= limit)
    throw new AtollError('invalid', `count: must be less than the team's limit of ${limit} sandboxes at a time`);
  const source = await sandboxFor(deps.db, team, sandboxId, 'fork');
  requireSecure(deps.requireSecure, source.secure);
  const node = deps.nodes.get(source.nodeId);
  await requireMemory(node, source, 'fork', 'a snapshot keeps the files');
  const config = await bootConfigOf(deps, source);
  const { layers, snapshotId, driver } = await takeSnapshot(deps, source, { memory: true, transient: true });
  const image: TemplateImage = {
    templateId: source.templateId,
    buildId: source.buildId,
    layers,
    ...config,
    driver,
    memorySnapshotId: snapshotId,
  };
  const results: ForkResult[] = [];
  const elsewhere = placesElsewhere(deps, source, snapshotId);
  const deadline = AbortSignal.timeout(forkDeadlineMs);
  try {
    await forEachParallel(
      Array.from({ length: count }, () => childOf(deps.clock, source, seconds)),
      forksAtOnce,
      async sandbox => {
        const context = { deps, team, node, image, sandbox, forkOf: source };
        results.push(await startChild(context, elsewhere, clientSignal, deadline));
      },
    );
  } finally {
    await node.deleteSnapshot(snapshotId).catch(() => {}); // the reconciler does it
  }
  return results;
}

type Context = Parameters<typeof createSandboxWorkflow>[0];

/** Another machine for a fork when its source's machine has no room; null where there is no way to one. */
type Elsewhere = () => Promise<{ nodeId: string; node: NodeProtocol } | null>;

/** The memory is put into the store only when a fork needs it there. */
function placesElsewhere(
  { db, nodes, durableSnapshots }: ForkDeps,
  source: SandboxRecord,
  snapshotId: string,
): Elsewhere {
  let stored: Promise<void> | undefined;
  return async () => {
    // Volumes stay where they are.
    if (!durableSnapshots?.isUsable || source.volumeMounts.length > 0 || nodes.list().length < 2) return null;
    await (stored ??= durableSnapshots.store(snapshotId, source.nodeId, null));
    const facts = await durableSnapshots.facts(snapshotId);
    if (!facts) return null;
    const { nodeId: home, cpuCount, memoryMiB } = source;
    const nodeId = await placeElsewhere({ db, nodes }, { home, facts, memory: true, cpuCount, memoryMiB });
    return { nodeId, node: nodes.get(nodeId) };
  };
}

/**
 * The same fork on another machine, if its own has no room. Throws `error` if that is not the reason, or no machine has
 * room.
 */
async function onAnother(context: Context, elsewhere: Elsewhere, error: unknown): Promise<Context> {
  if (!(error instanceof AtollError) || error.detail !== nodeFull) throw error;
  const place = await elsewhere();
  if (!place) throw error;
  const { nodeId, node } = place;
  // A new ID, because the first one is remembered as a sandbox on the machine without room.
  const sandbox = { ...context.sandbox, nodeId, sandboxId: newSandboxId(), executionId: newUuid() };
  return { ...context, node, sandbox };
}

/** Starts a fork on the machine of its source or, if that has no room, on another one. */
async function startChild(
  first: Context,
  elsewhere: Elsewhere,
  client: AbortSignal,
  deadline: AbortSignal,
): Promise<ForkResult> {
  const signal = AbortSignal.any([client, deadline]);
  let tried = first;
  try {
    const sandbox = await createSandboxWorkflow(first, signal).catch(async error => {
      tried = await onAnother(first, elsewhere, error);
      return createSandboxWorkflow(tried, signal);
    });
    return { sandbox };
  } catch (error) {
    const { deps, sandbox } = tried;
    const explained = explainFailedStart(error, client, deadline);
    deps.measures.notCreated(explained);
    deps.createCounts.countFailed(sandbox.nodeId, explained);
    deps.log.warn('a fork could not be started', { sandboxId: sandbox.sandboxId, error: causesOf(explained) });
    return {
      error: explained instanceof AtollError ? explained : new AtollError('internal', 'The fork could not be started'),
    };
  }
}

/** What a fork inherits; its ID, and so its tokens, are its own. */
function childOf(clock: Clock, source: SandboxRecord, seconds: number): SandboxRecord {
  const nowUs = clock();
  return {
    ...source,
    sandboxId: newSandboxId(),
    executionId: newUuid(),
    state: 'starting',
    createdAtUs: nowUs,
    startedAtUs: nowUs,
    endAtUs: nowUs,
    timeoutSeconds: seconds,
    kept: null,
    agentUnresponsive: false,
    durability: null,
    nextExecutionId: null,
    nextNodeId: null,
    replicaId: null,
  };
}
