import { AtollError } from '../../base/error.ts';
import type { CriuHost } from './criu.ts';

/**
 * How many open files of a sandbox, and mapped ones without a name, are looked at, and how many bytes are read of the
 * lists of mapped files, usually some 100 per file: there may be millions, and nobody waits for that.
 */
const most = { looks: 100_000, bytes: 16 << 20 } as const;
/** More are not looked at: CRIU would not come to an end with as many, and their numbers fill a request. */
const processesMax = 8_000;
/**
 * A process that forks or maps memory lets nobody see what it has mapped meanwhile, which at its memory limit may take
 * minutes.
 */
const timeoutMs = 10_000;

/** Files without a name that processes have open or mapped. Files that are closed meanwhile do not count. */
type NamelessFiles = {
  /** What those on the disk take of it: a checkpoint copies them. */
  diskBytes: number;
  /** The length of those in memory, holes included: a checkpoint goes through them page by page. */
  memoryBytes: number;
  /** Whether these are all; otherwise there are more than are looked at. */
  isAll: boolean;
};

/** The processes, in the host's numbers, and the team that they belong to, if one is known. */
type Looked = { pids: readonly number[]; teamId?: string | undefined };

/**
 * Looks at the files without a name of a sandbox. Errors: `unavailable` if its processes don't let themselves be looked
 * at now.
 */
export async function namelessFiles(
  { helper, helperBinary }: Pick<CriuHost, 'helper' | 'helperBinary'>,
  { pids, teamId }: Looked,
  { looks, bytes }: { looks: number; bytes: number } = most,
): Promise<NamelessFiles> {
  const argv = [helperBinary, 'look-for-nameless', String(looks), String(bytes)];
  const stdin = pids.slice(0, processesMax).join(' ');
  const { status, output } = await helper.spawn(argv, { timeoutMs, stdin, kind: 'dump', teamId });
  const [, diskBytes, memoryBytes, hasMore] = /^(\d+) (\d+) ([01])$/.exec(output.trim()) ?? [];
  if (status !== 0)
    throw new AtollError(
      'unavailable',
      'the memory of the sandbox can’t be kept now: ' +
        'what its processes have mapped can’t be looked at, as while they fork at their memory limit',
    );
  return {
    diskBytes: Number(diskBytes),
    memoryBytes: Number(memoryBytes),
    isAll: hasMore === '0' && pids.length <= processesMax,
  };
}
