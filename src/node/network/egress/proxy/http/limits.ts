/** Octets of a request's or response's head: as much as other servers and clients take. */
export const headBytesMax = 16 << 10;
/** Header lines of one head. */
export const fieldsMax = 200;
