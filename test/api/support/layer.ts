/** The digest of a layer, by the two digits of which it is made. */
export const layer = (digits: string): string => `sha256:${digits.repeat(32)}`;
