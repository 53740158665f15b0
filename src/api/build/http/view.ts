import type { BuildLogEntry as WireEntry } from '../../../protocol/api/template-build.ts';
import type { BuildLogEntry } from '../../../protocol/build.ts';
import { formatTime } from '../../../base/time.ts';

/** A line of a build's log. */
export function logEntryView({ timestampMs, level, message, step }: BuildLogEntry): WireEntry {
  return { timestamp: formatTime(timestampMs * 1000), level, message, ...(step !== undefined && { step }) };
}
