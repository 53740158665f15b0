import { mkdirSync, rmSync } from 'node:fs';
import { ownSources } from '../../setup/apt.mjs';
import { Problem } from '../../setup/problem.mjs';
import { run } from '../../setup/run.mjs';

/** Nobody reads these in a container. Copyright files stay, as licences require. */
const leftOut = ['man', 'doc', 'info', 'locale', 'bug'].map(name => `path-exclude=/usr/share/${name}/*`);
const kept = 'path-include=/usr/share/doc/*/copyright';

/**
 * Writes the archive of the smallest system of this machine's distribution with `packages`, from its own mirror. Equal
 * packages give equal bytes: mmdebstrap sorts, leaves out what depends on the machine, and uses no time after `epoch`
 * (SOURCE_DATE_EPOCH). Errors: `Problem` if mmdebstrap or the mirror is unavailable.
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
    // The tree is archived and then removed: it need not reach a disk.
    '--dpkgopt=force-unsafe-io',
    ...[...leftOut, kept].map(option => `--dpkgopt=${option}`),
    // How this machine reaches the mirror must not get into the image.
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
  // What it mounts and starts ends with it, however it ends: a clean-up can't enter a mount of the machine.
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
