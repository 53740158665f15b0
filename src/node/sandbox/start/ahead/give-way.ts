/**
 * How long refilling gives way to creates and kills; under a steady load the pool must still fill up again. `after`:
 * when one is done here, others still have to record it and tell its client, on the same cores. A pool that is more
 * than half empty does not wait for those.
 */
const giveWayMs = { step: 5, after: 10, max: 100 } as const;
/**
 * Waits until nobody has waited for a create or a kill for a while: creates that have their standby sandbox are done
 * within milliseconds. `awaited`: how many creates and kills somebody waits for now.
 */
export async function giveWayTo(
  awaited: () => number,
  pool: { isStopped(): boolean; isUrgent(): boolean },
): Promise<void> {
  const { step, after, max } = giveWayMs;
  const enough = () => (pool.isUrgent() ? step : after);
  let quietMs = awaited() > 0 ? 0 : after;
  for (let waitedMs = 0; quietMs < enough() && waitedMs < max && !pool.isStopped(); waitedMs += step) {
    await Bun.sleep(step);
    quietMs = awaited() > 0 ? 0 : quietMs + step;
  }
}
