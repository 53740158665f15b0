import { microsPerSecond } from '../app/clock.ts';
import type { App } from '../app/context.ts';
import { shiftRuns } from '../store/sandbox-clock.ts';

/**
 * Takes note that the machine's clock was set: what runs keeps the time that it had left. The order is such that no end is
 * in the past by mistake at any moment, whoever looks.
 */
export async function reconcileClock(app: App): Promise<void> {
  const stepUs = app.clockSteps.steppedUs();
  if (stepUs === 0) return;
  app.log.warn("the machine's clock was set; what runs keeps the time that it had left", { seconds: stepUs / microsPerSecond });
  if (stepUs < 0) app.clockSteps.follow();
  await shiftRuns(app.store.db, stepUs);
  if (stepUs > 0) app.clockSteps.follow();
}
