/**
 * Layout of the memfd that init and the agent share. It outlives the agent: a new agent finds the settings of a killed
 * one. `native/init.c` has the first three numbers as well.
 */
export const tokenOffset = 0;
/** Bytes that the token may take, including the line end after it. */
export const tokenBytesMax = 256;

/** `uint32` count of all orphans that ever ended, then a ring of `uint32 pid, int32 wait status`. Written by init. */
export const exitsOffset = 4096;
/** Ends that fit in the ring; a later one overwrites the oldest. */
export const exitsMax = 500;

/** `uint32` sequence, half and length of the newest settings. One write of 12 bytes switches between the halves. */
export const settingsHeadOffset = 8192;
/** Where the two halves for settings begin. */
export const settingsOffsets = [1 << 20, 9 << 20] as const;
/** Bytes of one half, which bounds the settings. */
export const settingsBytesMax = 8 << 20;

/** One record for each live process: `uint32` length (0: free), then JSON. */
export const processesOffset = 20 << 20;
/** Bytes of one record, including its length. A longer command is recorded without arguments and variables. */
export const processRecordBytesMax = 16 << 10;
/** Processes that can have a record; a restarted agent does not know any further ones. */
export const processesMax = 2500;
