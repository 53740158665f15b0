export function pythonOf(document: unknown): string;
