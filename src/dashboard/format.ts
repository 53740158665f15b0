const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/** A size in the unit that gives it at most four digits. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

const counts = new Intl.NumberFormat('en');

/** A number with thousands separators. */
export const formatCount = (value: number): string => counts.format(value);

/** The zone in which times are shown: the machine's, or universal time. */
export type Zone = 'local' | 'utc';

/** The zone in the form that a date formatter takes. */
export const zoneOption = (zone: Zone): { timeZone?: string } => (zone === 'utc' ? { timeZone: 'UTC' } : {});

/** One formatter per zone, made once: making one takes a hundred times as long as using it. */
const inZones = (options: Intl.DateTimeFormatOptions): Record<Zone, Intl.DateTimeFormat> => ({
  local: new Intl.DateTimeFormat('en-GB', options),
  utc: new Intl.DateTimeFormat('en-GB', { ...options, ...zoneOption('utc') }),
});
const clocks = inZones({ timeStyle: 'medium' });
const moments = inZones({ dateStyle: 'medium', timeStyle: 'long' });

/** The time of day, to the second. */
export const formatClock = (at: Date, zone: Zone): string => clocks[zone].format(at);

/** A full date and time, to the second, with its zone. */
export const formatMoment = (at: Date, zone: Zone): string => moments[zone].format(at);
