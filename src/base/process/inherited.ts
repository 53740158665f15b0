/**
 * The environment of this process as it is now, for programs that inherit it. The runtime by itself gives them what it
 * was when the process began, with variables that have been deleted since.
 */
export const inheritedEnvironment = (): Record<string, string | undefined> => process.env;
