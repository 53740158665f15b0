/** How often a process of the platform was restarted, and why, since the platform started. */
export type ProcessRestarts = { process: string; reason: string; count: number };

/** The operator's metric of all restarts. */
export const processRestartsMetric = 'atoll_process_restarts_total';
