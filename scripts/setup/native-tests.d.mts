/** Types of native-tests.mjs for the tests, which are checked. */
export const nativeTargets: Record<string, string[]>;
export function compileSanitized(root: string, output: string, sources: string[], more?: string[]): void;
export function compilePreloaded(root: string, output: string, source: string): void;
export function compileStandalone(root: string, name: string, output: string): void;
export function nativeCorpus(root: string, name: string): string[];
