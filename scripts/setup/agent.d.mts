/** Sources of the program that is process 1 of a sandbox, relative to the repository. */
export const initSources: string[];
export function buildAgent(root: string): Promise<void>;
