const addedSeconds = 900;

/** What a request for a quarter of an hour more asks for: a time that is over at `endAt` is counted from `nowMs` on. */
export const extension = (endAt: string, nowMs: number): { timeout: number } => ({
  timeout: Math.max(0, Math.round((Date.parse(endAt) - nowMs) / 1000)) + addedSeconds,
});
