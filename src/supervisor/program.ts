/** The rights that a part starts with. */
type Rights =
  /** Everything that root can do. */
  | 'root'
  /**
   * Those for reading the program, opening ports below 1024 and many files, and becoming another user, which the part
   * does before it serves.
   */
  | 'to drop';

/** A folder that a part sees at another place, which it alone can reach. */
type Shown = { folder: string; at: string };

/** Enough for what comes before a user of its own; nothing of it is left after. */
const untilDropped = '-all,+setuid,+setgid,+net_bind_service,+sys_resource,+dac_read_search';

/** Takes files of control groups up to `--`, enters each, and becomes what follows. */
const entering = 'while [ "$1" != -- ]; do echo 0 > "$1" || exit 1; shift; done; shift; exec "$@"';

/** Takes pairs of folders up to `--`, binds each first to its second, and becomes what follows. */
const showing = 'while [ "$1" != -- ]; do mount --bind "$1" "$2" || exit 1; shift 2; done; shift; exec "$@"';

/** Rights and surroundings of a part that is to start. */
type Start = {
  rights: Rights;
  /** Folders that it sees elsewhere. */
  shown?: readonly Shown[];
  /** Files of its control groups, see `PartGroups`. */
  joinFiles?: readonly string[];
};

/** The command line of a part: a program that ends with its parent, whatever that dies of. */
export function commandOf(program: readonly string[], { rights, shown = [], joinFiles = [] }: Start): string[] {
  const limits = rights === 'root' ? [] : ['--no-new-privs', '--inh-caps=-all', `--bounding-set=${untilDropped}`];
  // In a mount namespace of its own: what is shown there is nobody else's to see, and gone with the process.
  const view =
    shown.length === 0
      ? []
      : [
          'unshare',
          '--mount',
          '--propagation',
          'slave',
          'sh',
          '-c',
          showing,
          'sh',
          ...shown.flatMap(({ folder, at }) => [folder, at]),
          '--',
        ];
  const groups = joinFiles.length === 0 ? [] : ['sh', '-c', entering, 'sh', ...joinFiles, '--'];
  return [...groups, ...view, 'setpriv', '--pdeathsig', 'KILL', ...limits, '--', ...program];
}
