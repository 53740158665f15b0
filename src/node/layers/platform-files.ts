/** What every sandbox is given by the platform and no layer keeps, relative to its root. */
export const platformFiles = [
  'etc/hostname',
  'etc/hosts',
  'etc/resolv.conf',
  'run/e2b',
  '.agent',
  'dev',
  'proc',
  'sys',
];
