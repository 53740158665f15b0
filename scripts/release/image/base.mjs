import { mkdirSync, rmSync } from 'node:fs';
import { ownSources } from '../../setup/apt.mjs';
import { Problem } from '../../setup/problem.mjs';
import { run } from '../../setup/run.mjs';

/** Nobody reads these in a container. Copyright files stay, as licences ask. */
const leftOut = ['man', 'doc', 'info', 'locale', 'bug'].map(name => `path-exclude=/usr/share/${name}/*`);
const kept = 'path-include=/usr/share/doc/*/copyright';

/**
 * Writes the archive of the smallest system of this machine's distribution that has `packages`, from its own mirror.
 * Equal packages give equal bytes: mmdebstrap sorts, leaves out what depends on the machine, and puts no time behind
 * `epoch` (SOURCE_DATE_EPOCH). Errors: `Problem` where mmdebstrap or the mirror can't be had.
 */
export async function writeBase(tar, packages, epoch) {
  const { release, lines } = await ownSources().catch(error => {
    throw new Problem(`its base comes from the distribution's mirror: ${error.message}`);
  });
  const scratch = `${tar}.work`;
  mkdirSync(scratch, { recursive: true });
  const argv = [
    'mmdebstrap',
    '--mode=root',
    '--format=tar',
    '--variant=minbase',
    '--aptopt=APT::Install-Recommends "false"',
    // The tree becomes an archive and is removed: it needs to reach no disk.
    '--dpkgopt=force-unsafe-io',
    ...[...leftOut, kept].map(option => `--dpkgopt=${option}`),
    // How this machine reaches the mirror is its own business.
    '--customize-hook=rm -f "$1/etc/apt/apt.conf.d/99mmdebstrap"',
    `--include=${packages.join(',')}`,
    release,
    tar,
    ...lines,
  ];
  const env = {
    PATH: process.env.PATH,
    HOME: '/root',
    LANG: 'C.UTF-8',
    TMPDIR: scratch,
    SOURCE_DATE_EPOCH: String(epoch),
  };
  // What it mounts and starts ends with it, however it ends: a cleaning never walks into a mount of the machine.
  const ownNamespaces = ['unshare', '--mount', '--propagation', 'private', '--pid', '--fork', '--kill-child'];
  try {
    await run([...ownNamespaces, ...argv], { env });
  } catch (error) {
    throw new Problem(
      `mmdebstrap could not make its base from ${release}: ${error.message.split('\n').slice(-3).join(' ')}`,
    );
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
