/** Character devices that a sandbox may use: null, zero, full, random, urandom, tty, ptmx and its terminals. */
export const allowedDevices: { major: number; minor?: number }[] = [
  ...[3, 5, 7, 8, 9].map(minor => ({ major: 1, minor })),
  { major: 5, minor: 0 },
  { major: 5, minor: 2 },
  { major: 136 },
];
