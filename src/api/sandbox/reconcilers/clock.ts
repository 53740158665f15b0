import { microsPerSecond } from '../../../base/clock.ts';
import { shiftRuns } from '../store/clock.ts';
import type { Db } from '../../database/db.ts';
import type { ClockSteps } from '../../../base/clock.ts';
import type { Log } from '../../../base/telemetry/log.ts';

/**
 * Records that the machine's clock was set: running sandboxes keep the time that they had left. The order ensures that
 * at no moment an end lies in the past by mistake, whoever looks.
 */
export async function reconcileClock({
  clockSteps,
  db,
  log,
}: {
  clockSteps: ClockSteps;
  db: Db;
  log: Log;
}): Promise<void> {
  const stepUs = clockSteps.steppedUs();
  if (stepUs === 0) return;
  log.warn("the machine's clock was set; what runs keeps the time that it had left", {
    seconds: stepUs / microsPerSecond,
  });
  if (stepUs < 0) clockSteps.follow();
  await shiftRuns(db, stepUs);
  if (stepUs > 0) clockSteps.follow();
}
