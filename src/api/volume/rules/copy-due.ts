import { microsPerSecond } from '../../../base/clock.ts';
import type { VolumeState } from '../../../protocol/cluster.ts';
import type { VolumeRecord } from '../record.ts';

/** A volume that a sandbox has is copied so often, and any other one that was changed, seconds. */
const copyIntervalSeconds = { inSandbox: 15 * 60, idle: 30 };

/** Whether a volume is to be copied now: it has changed since the last copy, and that is old enough. */
export function isCopyDue({ copy }: VolumeRecord, state: VolumeState, nowUs: number): boolean {
  if (!copy) return true;
  const seconds = state.isInSandbox ? copyIntervalSeconds.inSandbox : copyIntervalSeconds.idle;
  return copy.changeUs !== changeOf(state) && nowUs - copy.copiedAtUs >= seconds * microsPerSecond;
}

/** Which state of a volume's content a copy is of, microseconds. */
export const changeOf = ({ changedAtMs }: VolumeState): number => Math.round(changedAtMs * 1000);
