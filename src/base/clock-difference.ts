/**
 * How far apart the clocks of machines that work together may be, seconds. Certificates and signed URLs depend on them.
 */
const differenceMaxSeconds = 60;

/**
 * What is wrong with a clock compared with another one, and what to do; null where they agree. Milliseconds since 1970.
 */
export function clockDifference(nowMs: number, otherMs: number, other: string): string | null {
  const seconds = Math.round((nowMs - otherMs) / 1000);
  if (Math.abs(seconds) <= differenceMaxSeconds) return null;
  const side = seconds > 0 ? 'ahead of' : 'behind';
  return (
    `the clock of this machine is ${Math.abs(seconds)} s ${side} ${other}, and at most ${differenceMaxSeconds} s are ` +
    'allowed: set it, e.g. by NTP'
  );
}
