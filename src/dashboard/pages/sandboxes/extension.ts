const addedSeconds = 900;

/** The body of a request for a quarter of an hour more: if the time at `endAt` is over, it counts from `nowMs`. */
export const extension = (endAt: string, nowMs: number): { timeout: number } => ({
  timeout: Math.max(0, Math.round((Date.parse(endAt) - nowMs) / 1000)) + addedSeconds,
});
