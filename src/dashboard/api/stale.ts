/** Whether a cached answer belongs to one of the paths, or to something below one. */
export const isStale = (path: unknown, stale: readonly string[]): boolean =>
  typeof path === 'string' && stale.some(start => path === start || path.startsWith(`${start}/`));
