/**
 * What init and the agent share: a memfd that outlives the agent, so that an agent that was killed is followed by one that
 * knows the sandbox's rules again. `native/init.c` has the first three numbers too.
 */
export const tokenOffset = 0;
export const tokenBytesMax = 256;

/** `uint32` count of all orphans that ever ended, then a ring of `uint32 pid, int32 wait status`. Written by init. */
export const exitsOffset = 4096;
export const exitsMax = 500;

/** `uint32` sequence, half and length of the newest settings. One write of 12 bytes switches from one half to the other. */
export const settingsHeadOffset = 8192;
export const settingsOffsets = [1 << 20, 9 << 20] as const;
export const settingsBytesMax = 8 << 20;

/** One record for each live process: `uint32` length (0: free), then JSON. */
export const processesOffset = 20 << 20;
export const processRecordBytesMax = 16 << 10;
export const processesMax = 2500;
