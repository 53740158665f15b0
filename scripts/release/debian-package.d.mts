export const runtimePackages: readonly string[];
type Facts = { version: string; description: string; architecture: string; epoch: number };
export function writeDebianPackage(tree: string, output: string, facts: Facts): Promise<void>;
