/** Microseconds since the epoch as RFC 3339 in UTC with six digits of fraction. */
export function formatTime(us: number): string {
  const iso = new Date(Math.floor(us / 1000)).toISOString();
  return `${iso.slice(0, -1)}${String(us % 1000).padStart(3, '0')}Z`;
}
