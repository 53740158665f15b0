/** Types of lock.mjs for the tests, which are checked. */
export function exclusively<T>(file: string, work: () => T | Promise<T>): Promise<T>;
