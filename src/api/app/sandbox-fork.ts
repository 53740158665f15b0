import { AtollError, causesOf } from '../../base/error.ts';
import { forEachParallel } from '../../base/parallel.ts';
import { newSandboxId, newUuid } from '../../base/id.ts';
import type { TemplateImage } from '../../protocol/node.ts';
import type { SandboxRecord } from '../store/sandbox-row.ts';
import type { TeamRecord } from '../store/team.ts';
import { createSandboxWorkflow } from '../workflows/create-sandbox.ts';
import { limitsOf } from './context.ts';
import type { App } from './context.ts';
import { requireMemory } from './memory-ability.ts';
import { explainFailedStart, requireSecure } from './sandbox-create.ts';
import { sandboxFor } from './sandbox-find.ts';
import { bootConfigOf, takeSnapshot } from './sandbox-snapshot.ts';
import { checkTimeout } from './sandbox-timeout.ts';

/** Forks that are started at a time: each keeps a core busy for a moment. */
const forksAtOnce = 4;
/** A client waits 60 s by default; what is not started by then is not started at all. */
const forkDeadlineMs = 55_000;

export type ForkResult = { sandbox: SandboxRecord } | { error: AtollError };

/**
 * Makes `count` sandboxes that begin as a running one is now, with its processes, its memory and its files. It stands
 * still shortly and runs on. Each fork succeeds or fails by itself; the order means nothing.
 * Errors: `invalid`, `not_found`, `conflict`, `precondition` where memory can't be kept, `no_space`. Then nothing was made.
 */
export async function forkSandbox(app: App, team: TeamRecord, sandboxId: string, options: { seconds: number; count: number }, clientSignal: AbortSignal): Promise<ForkResult[]> {
  const { seconds, count } = options;
  checkTimeout(app, team, seconds);
  const limit = limitsOf(app, team).concurrentSandboxes;
  if (count >= limit) throw new AtollError('invalid', `count: must be less than the team's limit of ${limit} sandboxes at a time`);
  const source = await sandboxFor(app, team, sandboxId, 'fork');
  requireSecure(app, source.secure);
  const node = app.nodes.get(source.nodeId);
  await requireMemory(node, source, 'fork', 'a snapshot keeps the files');
  const config = await bootConfigOf(app, source);
  const { layers, snapshotId, driver } = await takeSnapshot(app, source, true);
  const image: TemplateImage = { templateId: source.templateId, buildId: source.buildId, layers, ...config, driver, memorySnapshotId: snapshotId };
  const results: ForkResult[] = [];
  const deadline = AbortSignal.timeout(forkDeadlineMs);
  try {
    await forEachParallel(Array.from({ length: count }, () => childOf(app, source, seconds)), forksAtOnce, async sandbox => {
      results.push(await startChild({ app, team, node, image, sandbox, forkOf: source }, clientSignal, deadline));
    });
  } finally {
    await node.deleteSnapshot(snapshotId).catch(() => {}); // the reconciler does it
  }
  return results;
}

async function startChild(context: Parameters<typeof createSandboxWorkflow>[0], client: AbortSignal, deadline: AbortSignal): Promise<ForkResult> {
  try {
    return { sandbox: await createSandboxWorkflow(context, AbortSignal.any([client, deadline])) };
  } catch (error) {
    const explained = explainFailedStart(error, client, deadline);
    context.app.log.warn('a fork could not be started', { sandboxId: context.sandbox.sandboxId, error: causesOf(explained) });
    return { error: explained instanceof AtollError ? explained : new AtollError('internal', 'The fork could not be started') };
  }
}

/** What a fork inherits; its ID, and with it its tokens, are its own. */
function childOf(app: App, source: SandboxRecord, seconds: number): SandboxRecord {
  const nowUs = app.clock();
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
    nextExecutionId: null,
  };
}
