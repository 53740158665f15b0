/** The rights that a part starts with. */
type Rights =
  /** All rights of root. */
  | 'root'
  /**
   * Only the rights to read the program, to open ports below 1024 and many files, and to become another user, which the
   * part does before it serves.
   */
  | 'to drop';

/** A folder that a part sees at another place, where only the part can reach it. */
type Shown = { folder: string; at: string };

/** Enough for the steps before the change to its own user; none of these rights is left afterwards. */
const untilDropped = '-all,+setuid,+setgid,+net_bind_service,+sys_resource,+dac_read_search';

/** Takes files of control groups up to `--`, joins each group, and becomes the program that follows. */
const entering = 'while [ "$1" != -- ]; do echo 0 > "$1" || exit 1; shift; done; shift; exec "$@"';

/**
 * Takes pairs of folders up to `--`, binds the first of each pair to the second, and becomes the program that follows.
 */
const showing = 'while [ "$1" != -- ]; do mount --bind "$1" "$2" || exit 1; shift 2; done; shift; exec "$@"';

/** Rights and surroundings of a part to start. */
type Start = {
  rights: Rights;
  /** Folders that it sees at another place. */
  shown?: readonly Shown[];
  /** Files of its control groups, see `PartGroups`. */
  joinFiles?: readonly string[];
};

/** The command line of a part: a program that ends with its parent, however that dies. */
export function commandOf(program: readonly string[], { rights, shown = [], joinFiles = [] }: Start): string[] {
  const limits = rights === 'root' ? [] : ['--no-new-privs', '--inh-caps=-all', `--bounding-set=${untilDropped}`];
  // In its own mount namespace: nobody else sees what is shown there, and it disappears with the process.
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
