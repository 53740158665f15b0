import { microsPerSecond } from '../../../base/clock.ts';
import type { VolumeState } from '../../../protocol/cluster.ts';
import type { VolumeRecord } from '../record.ts';

/** How often a volume in a sandbox is copied, and any other changed volume, seconds. */
const copyIntervalSeconds = { inSandbox: 15 * 60, idle: 30 };

/** Whether a volume should be copied now: it has changed since the last copy, and that is old enough. */
export function isCopyDue({ copy }: VolumeRecord, state: VolumeState, nowUs: number): boolean {
  if (!copy) return true;
  const seconds = state.isInSandbox ? copyIntervalSeconds.inSandbox : copyIntervalSeconds.idle;
  return copy.changeUs !== changeOf(state) && nowUs - copy.copiedAtUs >= seconds * microsPerSecond;
}

/** The state of a volume's content that a copy would have, microseconds. */
export const changeOf = ({ changedAtMs }: VolumeState): number => Math.round(changedAtMs * 1000);
