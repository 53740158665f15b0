type Facts = { version: string; description: string; architecture: string; epoch: number };
export function writeNpmPackage(tree: string, output: string, facts: Facts): Promise<void>;
