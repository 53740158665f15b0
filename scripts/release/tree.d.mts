type Facts = { version: string; description: string; architecture: string; commit: string; epoch: number };
export function releaseFacts(root: string): Facts;
export function writeTree(root: string, tree: string, facts: Facts): Promise<void>;
export function settle(path: string, epoch: number): void;
