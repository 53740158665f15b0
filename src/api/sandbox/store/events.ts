import type { CompiledQuery } from 'kysely';
import { formatTime } from '../../../base/time.ts';
import type { Db } from '../../database/db.ts';
import { type NewEvent, recordEvent } from '../../event/store/write.ts';
import type { ListedSandbox, SandboxFacts } from '../record.ts';

/** Why a sandbox ended. `failed`: its start failed; `lost`: its node no longer has it. */
export type KillReason = 'request' | 'timeout' | 'exited' | 'out_of_memory' | 'lost' | 'failed';

/** What happened to a sandbox. `atUs`: microseconds since the epoch. */
type SandboxChange = {
  type: 'created' | 'updated' | 'paused' | 'resumed' | 'checkpointed' | 'forked' | 'disk_failed' | 'killed';
  atUs: number;
  data?: Record<string, unknown>;
};

/**
 * Writes an event of a sandbox, in the transaction of the change. `sandbox` is its state after the change; `behind` as
 * for `recordEvent`.
 */
export async function recordSandboxEvent(
  db: Db,
  sandbox: ListedSandbox,
  change: SandboxChange,
  behind: readonly CompiledQuery[] = [],
): Promise<void> {
  const { sandboxId, executionId, templateId, buildId, teamId, metadata } = sandbox;
  const ends = change.type === 'paused' || change.type === 'killed';
  const data = {
    ...(metadata && { sandbox_metadata: metadata }),
    ...(ends && { execution: executionOf(sandbox, change.atUs) }),
    ...change.data,
  };
  const event: NewEvent = {
    teamId,
    type: `sandbox.lifecycle.${change.type}`,
    subject: { kind: 'sandbox', id: sandboxId },
    atUs: change.atUs,
    data: Object.keys(data).length > 0 ? data : null,
    members: {
      sandboxId,
      sandbox_id: sandboxId,
      sandboxExecutionId: executionId,
      sandbox_execution_id: executionId,
      sandboxTemplateId: templateId,
      sandbox_template_id: templateId,
      sandboxBuildId: buildId,
      sandbox_build_id: buildId,
      sandboxTeamId: teamId,
      sandbox_team_id: teamId,
    },
  };
  await recordEvent(db, event, behind);
}

/** The run that has ended; for a paused sandbox, with its pause. */
function executionOf(sandbox: SandboxFacts, atUs: number): Record<string, unknown> {
  const endedAtUs = sandbox.kept === null ? atUs : Math.min(atUs, sandbox.endAtUs);
  return {
    started_at: formatTime(sandbox.startedAtUs),
    vcpu_count: sandbox.cpuCount,
    memory_mb: sandbox.memoryMiB,
    execution_time: Math.max(0, Math.round((endedAtUs - sandbox.startedAtUs) / 1000)),
  };
}
