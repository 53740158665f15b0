/** Allows something this often in a second, and at once as often as was saved up. */
export type Bucket = { take(): boolean };

/** A full bucket. */
export function createBucket(
  { perSecond, burst }: { perSecond: number; burst: number },
  now: () => number = () => performance.now(),
): Bucket {
  let left = burst;
  let at = now();
  return {
    take() {
      const time = now();
      left = Math.min(left + ((time - at) / 1000) * perSecond, burst);
      at = time;
      if (left < 1) return false;
      left--;
      return true;
    },
  };
}
