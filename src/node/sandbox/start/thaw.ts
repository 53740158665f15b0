import { messageOf } from '../../../base/error.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import type { ResumeSandbox } from '../../../protocol/node.ts';
import type { Egress } from '../../network/egress/egress.ts';
import { resumedRecord } from '../records/record.ts';
import type { Records } from '../records/record-store.ts';
import { placeOf } from '../records/start-ticks.ts';
import type { Frozen } from '../state/sandbox-state.ts';
import { configureAgent } from './agent-settings.ts';
import type { StartedSandbox } from './start-sandbox.ts';

/** What thawing frozen sandboxes needs. */
type ThawParts = { records: Records; egress: Egress; logOutput: boolean; log: Log; requireLease(): void };

/**
 * Lets the frozen processes of a paused sandbox continue, as another execution. If that fails, none of them has run;
 * the sandbox may be recorded as running.
 */
export async function thaw(parts: ThawParts, frozen: Frozen, request: ResumeSandbox): Promise<StartedSandbox> {
  const { records, egress } = parts;
  const { sandboxId, record: paused, processes } = frozen;
  const { slot, driver, namespace, pid } = processes;
  const { nextExecutionId: executionId, network } = request;
  const record = resumedRecord(paused, { ...placeOf(slot, pid), executionId, network, resumedFrom: 'memory' });
  await records.write(record);
  if (!Bun.deepEquals(paused.network, network)) await egress.update({ sandboxId, slot, namespace }, network);
  parts.requireLease();
  driver.thaw(slot);
  await configure(parts, frozen, request);
  return { record, processes };
}

/**
 * Sets what must be new in a sandbox that continues from its memory. If its agent does not listen, it is still a
 * sandbox.
 */
async function configure({ egress, logOutput, log }: ThawParts, frozen: Frozen, request: ResumeSandbox): Promise<void> {
  const { sandboxId, record, processes } = frozen;
  const settings = {
    envVars: null,
    accessToken: request.accessToken,
    defaults: null,
    authorities: egress.trusted(request.network) ?? null,
    freshEntropy: true,
    logOutput,
  };
  await configureAgent(processes.namespace, record.controlToken, settings).catch(error =>
    log.warn('the agent of a resumed sandbox does not answer', { sandboxId, error: messageOf(error) }),
  );
}
