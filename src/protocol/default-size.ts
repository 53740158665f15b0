/** The size of a sandbox whose template sets none. Most creates ask for it, so standby sandboxes have it too. */
export const defaultSize = { cpuCount: 2, memoryMiB: 1024, diskMiB: 10_240 } as const;
