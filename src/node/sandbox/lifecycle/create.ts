import { AtollError } from '../../../base/error.ts';
import type { CreateSandbox } from '../../../protocol/node.ts';
import type { RunningRecord } from '../records/record.ts';
import type { Withdrawn } from '../records/withdrawn.ts';
import type { StartedSandbox } from '../start/start-sandbox.ts';
import type { Running, Starting } from '../state/sandbox-state.ts';
import { endWithProcesses, type EndParts } from './end.ts';
import { followLogs, type FollowParts } from './follow-logs.ts';

/** What creating sandboxes needs. */
export type CreateParts = EndParts &
  FollowParts & {
    /** Refuses sandboxes that the node has no room for; see start/admission.ts. */
    admitNew(request: CreateSandbox): Promise<Disposable>;
    /** See start/start-new.ts. */
    startNew(request: CreateSandbox): Promise<StartedSandbox>;
    withdrawn: Pick<Withdrawn, 'require'>;
  };

/**
 * Creates a sandbox; the same execution is started once, however often this is called. Errors: those of
 * `NodeProtocol.create`, and `conflict` if the sandbox is here as another execution.
 */
export async function createSandbox(parts: CreateParts, request: CreateSandbox): Promise<RunningRecord> {
  const { sandboxes } = parts;
  const { sandboxId, executionId } = request;
  const known = sandboxes.get(sandboxId);
  if (known?.kind === 'starting' && known.executionId === executionId) return known.started;
  if ((known?.kind === 'running' || known?.kind === 'pausing') && known.record.executionId === executionId)
    return known.record;
  if (known) throw new AtollError('conflict', `sandbox ${sandboxId} is here already: it is ${known.kind}`);
  parts.withdrawn.require(executionId);
  const { promise: started, resolve } = Promise.withResolvers<RunningRecord>();
  const starting = sandboxes.add<Starting>({ kind: 'starting', sandboxId, executionId, started });
  resolve(sandboxes.inTurn(sandboxId, () => create(parts, request, starting)));
  return started;
}

async function create(parts: CreateParts, request: CreateSandbox, starting: Starting): Promise<RunningRecord> {
  const { sandboxes, logs } = parts;
  const { sandboxId } = request;
  const beganMs = Date.now();
  let started: StartedSandbox;
  try {
    using _room = await parts.admitNew(request);
    started = await parts.startNew(request);
  } catch (error) {
    sandboxes.remove(starting);
    throw error;
  }
  const { record, processes } = started;
  const running: Running = {
    kind: 'running',
    sandboxId,
    record,
    processes,
    policyInForce: record.network,
    diskFailed: false,
  };
  sandboxes.transition(starting, running);
  const { image, resources } = record;
  logs.write(sandboxId, 'info', 'sandbox', `created from template ${image.templateId}`, {
    event: 'created',
    templateId: image.templateId,
    buildId: image.buildId,
    cpuCount: String(resources.cpuCount),
    memoryMiB: String(resources.memoryMiB),
    memory: String(image.memorySnapshotId !== undefined),
  });
  followLogs(parts, running, beganMs);
  endWithProcesses(parts, running);
  return record;
}
