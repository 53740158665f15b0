/** A sandbox that has recently used this many processors gives way to those that have not. */
const heavyFrom = 0.5;
/**
 * The part of its use that still counts at the next look: after using two processors it counts as heavy for four more
 * looks.
 */
const left = 0.75;

/**
 * Processors that a sandbox has used recently: the maximum over all looks, where a look counts less with each later
 * one. `busy`: processors that it has used since the last look.
 */
export const laterUse = (before: number, busy: number): number => Math.max(busy, before * left);

/** Whether a sandbox has recently used so much that others come first. */
export const isHeavy = (use: number): boolean => use >= heavyFrom;
