import { runtimePackages } from '../../../scripts/release/debian-package.mjs';
import { needed } from '../../../scripts/setup/system-packages.mjs';

/** Types of machine, as Node.js names them. */
export type Architecture = 'x64' | 'arm64';

/** A machine of the laboratory: a distribution with the kernel that it ships. */
export type Host = {
  name: string;
  title: string;
  /** What mmdebstrap makes it from. */
  suite: string;
  architecture: Architecture;
  /** In which form Atoll is installed: a checkout for `npm run up`, or the Debian package of a release. */
  installs: 'checkout' | 'package';
};

const debianNames = { x64: 'amd64', arm64: 'arm64' } as const;

/** Whether its programs are not those of this machine. */
export const isForeign = ({ architecture }: Host): boolean => architecture !== process.arch;

/** What Debian calls a type of machine. */
export const debianNameOf = (architecture: Architecture): string => debianNames[architecture];

/** What a small server has before Atoll comes: systemd, a login. */
const bareHost = [
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
];

/** What `npm run up` needs from the distribution; and Python, which laboratory and suites use. */
const forCheckouts = ['nodejs', 'npm', 'git', 'python3'];

/**
 * Debian's npm consists of four hundred packages, which take an emulator an hour to unpack and set up: machines of
 * another type use npm's own.
 */
export const ownNpm = 'npm@10.9.4';

/** A host's packages: its own, and those that would be installed while it has no network. */
export function packagesOf(host: Host): { own: string[]; later: string[] } {
  const own = [...bareHost, `linux-image-cloud-${debianNameOf(host.architecture)}`];
  const forCheckout = forCheckouts.filter(name => name !== 'npm' || !isForeign(host));
  return host.installs === 'checkout'
    ? { own: [...own, ...forCheckout], later: needed.map(({ name }) => name) }
    : { own, later: [...runtimePackages] };
}

export const hosts: Host[] = [
  { name: 'debian-12', title: 'Debian 12', suite: 'bookworm', architecture: 'x64', installs: 'checkout' },
  { name: 'debian-13', title: 'Debian 13', suite: 'trixie', architecture: 'x64', installs: 'checkout' },
  { name: 'debian-sid', title: 'Debian unstable', suite: 'sid', architecture: 'x64', installs: 'checkout' },
  {
    name: 'debian-12-package',
    title: 'Debian 12, Debian package',
    suite: 'bookworm',
    architecture: 'x64',
    installs: 'package',
  },
  {
    name: 'debian-13-arm64',
    title: 'Debian 13 on arm64',
    suite: 'trixie',
    architecture: 'arm64',
    installs: 'checkout',
  },
];
