/** For how long after it spoke a machine may count on control, seconds. */
export const leaseSeconds = 10;

/** Beyond the time after which a machine pauses its sandboxes: for what it takes to begin with that. Seconds. */
const marginSeconds = 5;

/** For how long after its lease a machine is waited for before its sandboxes count as paused, seconds. */
export const silentSeconds = (isolationSeconds: number): number => isolationSeconds + marginSeconds;
