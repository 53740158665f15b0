/** The digest of a layer, from the two digits that it consists of. */
export const layer = (digits: string): string => `sha256:${digits.repeat(32)}`;
