import { readFileSync } from 'node:fs';
import { withoutPlaces } from '../../base/process/without-places.ts';
import { readIfThere } from '../../base/small-file.ts';

/** Lines of CRIU's log that a failure shows, and characters of them. A sandbox chose the names in them. */
const shownErrors = { lines: 6, characters: 600 } as const;

/** Said where the host has fewer descriptors than CRIU would like, and at each end: neither is why. */
const saysNothing = /^(?:rlimit: Can't setup RLIMIT_NOFILE|(?:Dumping|Restoring) FAILED)/;

/** What people would not understand of a fork bomb, which CRIU tries for half a minute to stop. */
const inPlainWords: [RegExp, string][] = [
  [
    /^Timeout reached\. Try to interrupt: \d+$/,
    'its processes could not all be stopped in time, as where they start others all the time',
  ],
  [/^Unseizable non-zombie (\d+) found.*/, "can't stop $1"],
];
const plain = (reason: string) => inPlainWords.reduce((said, [words, better]) => said.replace(words, better), reason);

/** What tells what is the host's in CRIU's words from what is the sandbox's. */
type HostFacts = {
  /** Directories of the host that CRIU was told of. */
  places: readonly string[];
  /** The host's IDs of the sandbox's processes, as far as there are some. */
  processes: readonly number[];
  /** None of its processes has a lower ID of the host. */
  lowestPid: number;
};

/**
 * What the lines of the form `… Error (file:line): what` say, the first ones: those behind follow from them. People
 * read it, of whom many are strangers to the host: processes are named as the sandbox knows them, and nothing is where
 * the host has it. Nothing is decided by it.
 */
export function firstErrors(log: string, facts: HostFacts): string {
  const errors = log.split('\n').flatMap(line => {
    const begin = line.indexOf('Error (');
    const end = begin < 0 ? -1 : line.indexOf('): ', begin);
    return end < 0 ? [] : [line.slice(end + 2).trim()];
  });
  const reasons = errors
    .filter(text => !saysNothing.test(text))
    .slice(0, shownErrors.lines)
    .map(plain);
  return withoutPlaces(withoutPids(reasons.join('; '), facts), facts.places).slice(0, shownErrors.characters);
}

/** A number that CRIU may mean a process or thread by: no part of a name, and of a path only where that is of /proc. */
const maybePids = /(?<=\/proc\/|\btask\/)\d+|(?<![\w./:@-])\d+(?![\w@-])/g;

/**
 * The IDs of the sandbox's processes as it knows them. Those that have ended, as those of a fork bomb do all the time,
 * are told by what IDs the host has given since.
 */
function withoutPids(text: string, { processes, lowestPid }: HostFacts): string {
  const newestPid = lastPid();
  const mayBe = (pid: number) =>
    lowestPid <= newestPid ? pid >= lowestPid && pid <= newestPid : pid >= lowestPid || pid <= newestPid;
  return text.replace(maybePids, (digits, at: number) => {
    const inside = pidInside(Number(digits), processes);
    if (inside !== undefined) return inside;
    if (text.endsWith('/proc/', at)) return '…';
    return mayBe(Number(digits)) ? 'a process' : digits;
  });
}

/** The host's latest process ID. Source: proc_loadavg(5). */
export const lastPid = (): number => Number(readFileSync('/proc/loadavg', 'utf8').trim().split(' ')[4]);

/** What a process or thread of these is known by in its own namespace. Source: proc_pid_status(5). */
function pidInside(pid: number, processes: readonly number[]): string | undefined {
  const status = readIfThere(`/proc/${pid}/status`) ?? '';
  const of = /^Tgid:\t(\d+)$/m.exec(status)?.[1];
  if (of === undefined || !processes.includes(Number(of))) return undefined;
  return /^NSpid:.*\t(\d+)$/m.exec(status)?.[1];
}
