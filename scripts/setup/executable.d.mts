export function buildExecutable(root: string): Promise<void>;
export function compileExecutable(root: string, output: string): Promise<void>;
