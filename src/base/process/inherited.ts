/**
 * The present environment of this process, for programs that inherit it. By itself the runtime gives them the
 * environment with which the process began, including variables deleted since.
 */
export const inheritedEnvironment = (): Record<string, string | undefined> => process.env;
