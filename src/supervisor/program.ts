/** Which rights a part is started with. */
export type Rights =
  /** Everything that root can do. */
  | 'root'
  /** What it takes to read the program, open ports below 1024 and many files, and to become another user, which it does before it serves. */
  | 'to drop';

/** A folder that a part sees at another place, where it can reach it, and nobody else does. */
export type Shown = { folder: string; at: string };

/** Enough for what comes before a user of its own; nothing of it is left after. */
const untilDropped = '-all,+setuid,+setgid,+net_bind_service,+sys_resource,+dac_read_search';

/** Takes pairs of folders up to `--`, binds each first to its second, and becomes what follows. */
const showing = 'while [ "$1" != -- ]; do mount --bind "$1" "$2" || exit 1; shift 2; done; shift; exec "$@"';

/** The command line of a part: a program of the pinned runtime that ends with its parent, whatever that dies of. */
export function commandOf(program: string, rights: Rights, shown: readonly Shown[] = []): string[] {
  const limits = rights === 'root' ? [] : ['--no-new-privs', '--inh-caps=-all', `--bounding-set=${untilDropped}`];
  // In a mount namespace of its own: what is shown there is nobody else's to see, and gone with the process.
  const view = shown.length === 0 ? [] : ['unshare', '--mount', '--propagation', 'slave', 'sh', '-c', showing, 'sh', ...shown.flatMap(({ folder, at }) => [folder, at]), '--'];
  return [...view, 'setpriv', '--pdeathsig', 'KILL', ...limits, '--', process.execPath, '--no-env-file', '--config=/dev/null', program];
}
