/** Wall-clock time, microseconds since the epoch. */
export type Clock = () => number;

/**
 * The machine's clock. Two readings within one millisecond differ, so that things made one after the other sort in that
 * order.
 */
export function systemClock(nowMs: () => number = Date.now): Clock {
  let lastMs = 0;
  let extraUs = 0;
  return () => {
    const ms = Math.floor(nowMs());
    extraUs = ms === lastMs ? Math.min(extraUs + 1, 999) : 0;
    lastMs = ms;
    return ms * 1000 + extraUs;
  };
}

/** Time synchronisation makes smaller steps all the time. */
const stepUsMin = 1_000_000;

/** A clock that goes on unchanged when somebody sets the machine's clock, and tells how far that was set. */
export type SteadyClock = {
  clock: Clock;
  /** Microseconds by which the machine's clock is ahead (negative: behind) of this one; 0 where nobody set it. */
  steppedUs(): number;
  /** Adopts the machine's clock as it is now. */
  follow(): void;
};

/** `wallMs`: the machine's clock; `steadyMs`: a clock that nobody can set, with any starting point. */
export function steadyClock(
  wallMs: () => number = Date.now,
  steadyMs: () => number = () => performance.now(),
): SteadyClock {
  let offsetMs = wallMs() - steadyMs();
  return {
    clock: systemClock(() => offsetMs + steadyMs()),
    steppedUs() {
      const stepUs = Math.round((wallMs() - steadyMs() - offsetMs) * 1000);
      if (Math.abs(stepUs) >= stepUsMin) return stepUs;
      offsetMs += stepUs / 1000;
      return 0;
    },
    follow() {
      offsetMs = wallMs() - steadyMs();
    },
  };
}

/** The part of a `SteadyClock` that tells of steps. */
export type ClockSteps = Pick<SteadyClock, 'steppedUs' | 'follow'>;

/** Microseconds in a second. */
export const microsPerSecond = 1_000_000;

const rfc3339 = /^(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?([Zz]|[+-]\d{2}:\d{2})$/;

/** Microseconds of an RFC 3339 text (finer fractions are cut off), or null for any other text. */
export function parseTime(text: string): number | null {
  const match = rfc3339.exec(text);
  if (!match) return null;
  const [, date, time, fraction = '', zone = 'Z'] = match;
  const ms = Date.parse(`${date}T${time}${zone.toUpperCase()}`);
  return Number.isNaN(ms) ? null : ms * 1000 + Number(fraction.slice(0, 6).padEnd(6, '0'));
}
