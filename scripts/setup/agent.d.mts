export function buildAgent(root: string): Promise<void>;
