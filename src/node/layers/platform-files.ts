import { platformDirectories } from '../../protocol/template/platform-directories.ts';

/** What every sandbox is given by the platform and no layer keeps, relative to its root. */
export const platformFiles = ['etc/hostname', 'etc/hosts', 'etc/resolv.conf', 'run/e2b', ...platformDirectories];
