/** Wall-clock time, microseconds since the epoch. Follows changes of the clock. */
export type Clock = () => number;

/** The machine's clock. Readings within one millisecond differ, so that what is made one after the other also sorts so. */
export function systemClock(): Clock {
  let lastMs = 0;
  let extraUs = 0;
  return () => {
    const ms = Date.now();
    extraUs = ms === lastMs ? Math.min(extraUs + 1, 999) : 0;
    lastMs = ms;
    return ms * 1000 + extraUs;
  };
}

export const microsPerSecond = 1_000_000;

const rfc3339 = /^(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?([Zz]|[+-]\d{2}:\d{2})$/;

/** Microseconds of an RFC 3339 text (finer fractions are cut off), or null when it is none. */
export function parseTime(text: string): number | null {
  const match = rfc3339.exec(text);
  if (!match) return null;
  const [, date, time, fraction = '', zone = 'Z'] = match;
  const ms = Date.parse(`${date}T${time}${zone.toUpperCase()}`);
  return Number.isNaN(ms) ? null : ms * 1000 + Number(fraction.slice(0, 6).padEnd(6, '0'));
}
