/** A sandbox that has used so many processors of late gives way to those that have not. */
const heavyFrom = 0.5;
/** What is left of its use at the next look: one that used two processors counts as heavy for four looks more. */
const left = 0.75;

/**
 * Processors that a sandbox has used of late: the most of any look, less with each look since. `busy`: processors that
 * it has used since the look before.
 */
export const laterUse = (before: number, busy: number): number => Math.max(busy, before * left);

/** Whether a sandbox has used so much of late that others come first. */
export const isHeavy = (use: number): boolean => use >= heavyFrom;
