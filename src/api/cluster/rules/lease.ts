/** How long after it last spoke a machine may count on control, seconds. */
export const leaseSeconds = 10;

/** Added to the time after which a machine pauses its sandboxes, because it needs some time to begin. Seconds. */
const marginSeconds = 5;

/** How long after a machine's lease control waits before it counts the machine's sandboxes as paused, seconds. */
export const silentSeconds = (isolationSeconds: number): number => isolationSeconds + marginSeconds;
