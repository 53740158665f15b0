/** A length of time by its two largest parts. */
export function formatDuration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds}s`;
  const [days, hours, minutes] = [
    Math.floor(seconds / 86_400),
    Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60,
  ];
  if (days > 0) return hours > 0 ? `${days}d ${hours}h` : `${days}d`;
  if (hours > 0) return minutes > 0 ? `${hours}h ${minutes}m` : `${hours}h`;
  return minutes >= 10 || seconds % 60 === 0 ? `${minutes}m` : `${minutes}m ${seconds % 60}s`;
}

/** How long ago, in as few words as possible. */
export function formatAgo(ms: number): string {
  return Math.abs(ms) < 2000 ? 'now' : ms < 0 ? `in ${formatDuration(-ms)}` : `${formatDuration(ms)} ago`;
}
