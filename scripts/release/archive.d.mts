type Facts = { version: string; architecture: string; epoch: number };
export function writeArchive(tree: string, output: string, facts: Facts): Promise<void>;
export function writeChecksums(output: string): string;
