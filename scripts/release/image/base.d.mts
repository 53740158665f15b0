export function writeBase(tar: string, packages: readonly string[], epoch: number): Promise<void>;
