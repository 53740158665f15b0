/** A machine of the laboratory: a distribution with the kernel that it ships. */
export type Host = {
  name: string;
  title: string;
  /** What mmdebstrap makes it from. */
  suite: string;
};

/** What a person has on a small server before Atoll comes: systemd, a login, Node.js and git of the distribution. */
export const everyHost = [
  'systemd-sysv',
  'systemd-resolved',
  'dbus',
  'udev',
  'kmod',
  'procps',
  'sudo',
  'openssh-server',
  'iproute2',
  'ca-certificates',
  'linux-image-cloud-amd64',
  'nodejs',
  'npm',
  'git',
  'python3',
];

export const hosts: Host[] = [
  { name: 'debian-12', title: 'Debian 12', suite: 'bookworm' },
  { name: 'debian-13', title: 'Debian 13', suite: 'trixie' },
  { name: 'debian-sid', title: 'Debian unstable', suite: 'sid' },
];
