/**
 * Environment variables for the runtime's allocator. By default it looks for memory to give back whenever a process
 * waits, ten times a second, and takes it again with the next request: with hundreds of idle sandboxes that is a sixth
 * of the node's work, and half of the supervisor's. `bin/atoll` and the service set them for the supervisor.
 */
export const allocatorSettings = { MIMALLOC_PURGE_DELAY: '5000', MIMALLOC_PURGE_HOLES_MIN_INTERVAL: '5000' } as const;
