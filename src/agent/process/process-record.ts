import type { Native } from '../native.ts';
import type { ProcessConfig } from './config.ts';

/** Record of a process in case the agent is killed. Times are on a clock that nobody can set. */
export type ProcessRecord = {
  pid: number;
  startedAtMs: number;
  /** Its deadline; absent: none. */
  endsAtMs?: number;
  config: ProcessConfig;
  tag: string | undefined;
};

type Clock = Pick<Native, 'clockMs'>;

/** The record of a process that was just started. `timeoutMs`: how long it may run; undefined: for ever. */
export function recordOf(
  { pid, config, tag }: Pick<ProcessRecord, 'pid' | 'config' | 'tag'>,
  timeoutMs: number | undefined,
  clock: Clock,
): ProcessRecord {
  const startedAtMs = clock.clockMs();
  return { pid, startedAtMs, config, tag, ...(timeoutMs !== undefined && { endsAtMs: startedAtMs + timeoutMs }) };
}

/**
 * How long it may still run, ms; undefined: for ever. Not longer than at first: where the kernel keeps no separate time
 * for a sandbox, a move gives it another host's clock.
 */
export function leftUntilEnd({ startedAtMs, endsAtMs }: ProcessRecord, clock: Clock): number | undefined {
  return endsAtMs === undefined ? undefined : Math.max(0, endsAtMs - Math.max(startedAtMs, clock.clockMs()));
}
