/**
 * What the runtime's allocator is told in the environment of a process. It looks for memory to give back whenever a
 * process waits, ten times a second, and takes it again with the next request: with hundreds of idle sandboxes that is
 * a sixth of what the node does, and half of what the supervisor does. `bin/atoll` and the service tell the latter.
 */
export const allocatorSettings = { MIMALLOC_PURGE_DELAY: '5000', MIMALLOC_PURGE_HOLES_MIN_INTERVAL: '5000' } as const;
