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

/** A number with thousands apart. */
export const formatCount = (value: number): string => counts.format(value);

/** The zone in which moments are told: that of the machine, or universal time. */
export type Zone = 'local' | 'utc';

/** What a formatter of dates takes for a zone. */
export const zoneOption = (zone: Zone): { timeZone?: string } => (zone === 'utc' ? { timeZone: 'UTC' } : {});

/** A formatter for each zone, made once: making one takes a hundred times what using it does. */
const inZones = (options: Intl.DateTimeFormatOptions): Record<Zone, Intl.DateTimeFormat> => ({
  local: new Intl.DateTimeFormat('en-GB', options),
  utc: new Intl.DateTimeFormat('en-GB', { ...options, ...zoneOption('utc') }),
});
const clocks = inZones({ timeStyle: 'medium' });
const moments = inZones({ dateStyle: 'medium', timeStyle: 'long' });

/** The time of day of a moment, to the second. */
export const formatClock = (at: Date, zone: Zone): string => clocks[zone].format(at);

/** A moment whole, to the second, with its zone. */
export const formatMoment = (at: Date, zone: Zone): string => moments[zone].format(at);
