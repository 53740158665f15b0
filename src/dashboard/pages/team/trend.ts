/** Least number of known days for a forecast. */
const daysMin = 3;
/** No forecast reaches further, days. */
const horizonDays = 400;
const daySeconds = 24 * 3600;

type Point = { timestampUnix: number; concurrentSandboxes: number };

/**
 * In how many days after the last one the daily maximum of running sandboxes reaches `limit` if it keeps growing (a
 * line through the days, by least squares); null if it does not grow, or too little is known.
 */
export function daysUntil(points: readonly Point[], limit: number): number | null {
  const peaks = new Map<number, number>();
  for (const { timestampUnix, concurrentSandboxes } of points) {
    const day = Math.floor(timestampUnix / daySeconds);
    peaks.set(day, Math.max(peaks.get(day) ?? 0, concurrentSandboxes));
  }
  const days = [...peaks.keys()];
  const last = Math.max(...days);
  if (days.length < daysMin) return null;
  const meanDay = days.reduce((sum, day) => sum + day, 0) / days.length;
  const mean = [...peaks.values()].reduce((sum, peak) => sum + peak, 0) / days.length;
  const [above, below] = [...peaks].reduce(
    ([above, below], [day, peak]) => [above + (day - meanDay) * (peak - mean), below + (day - meanDay) ** 2] as const,
    [0, 0] as const,
  );
  const slope = above / below;
  if (slope <= 0) return null;
  const left = (limit - mean) / slope - (last - meanDay);
  return left > horizonDays ? null : Math.max(0, Math.ceil(left));
}
