/** Whether a kept answer is of one of the paths, or of something below one. */
export const isStale = (path: unknown, stale: readonly string[]): boolean =>
  typeof path === 'string' && stale.some(start => path === start || path.startsWith(`${start}/`));
