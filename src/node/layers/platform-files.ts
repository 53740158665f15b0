import { platformDirectories } from '../../protocol/template/platform-directories.ts';

/** What the platform gives to every sandbox and no layer keeps, relative to the sandbox's root. */
export const platformFiles = ['etc/hostname', 'etc/hosts', 'etc/resolv.conf', 'run/e2b', ...platformDirectories];
