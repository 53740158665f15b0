export function settle(path: string, epoch: number): void;
