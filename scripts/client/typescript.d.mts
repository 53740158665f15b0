export function typescriptOf(document: unknown): string;
