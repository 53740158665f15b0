export function compileExecutable(root: string, output: string): Promise<void>;
export function settle(path: string, epoch: number): void;
