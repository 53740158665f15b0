/** Path of the pinned runtime in a checkout. */
export function bunPath(root: string): string;
