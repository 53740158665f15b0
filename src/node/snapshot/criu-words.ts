import { readFileSync } from 'node:fs';
import { withoutPlaces } from '../../base/process/without-places.ts';
import { readIfThere } from '../../base/small-file.ts';

/** Lines of CRIU's log that a failure shows, and characters of them. A sandbox chose the names in them. */
const shownErrors = { lines: 6, characters: 600 } as const;

/**
 * CRIU writes this if the host has fewer descriptors than it would like, and at each failed end: neither is the cause.
 */
const saysNothing = /^(?:rlimit: Can't setup RLIMIT_NOFILE|(?:Dumping|Restoring) FAILED)/;

/**
 * Plain words for errors that people would not understand, about a fork bomb, which CRIU tries to stop for half a
 * minute.
 */
const inPlainWords: [RegExp, string][] = [
  [
    /^Timeout reached\. Try to interrupt: \d+$/,
    'its processes could not all be stopped in time, as where they start others all the time',
  ],
  [/^Unseizable non-zombie (\d+) found.*/, "can't stop $1"],
];
const plain = (reason: string) => inPlainWords.reduce((said, [words, better]) => said.replace(words, better), reason);

/** Facts that tell the host's things in CRIU's words from the sandbox's. */
type HostFacts = {
  /** Directories of the host that CRIU was told of. */
  places: readonly string[];
  /** The host's IDs of the sandbox's processes, if there are any. */
  processes: readonly number[];
  /** None of its processes has a lower ID on the host. */
  lowestPid: number;
};

/**
 * The first errors of CRIU's log, from lines of the form `… Error (file:line): what`: later ones follow from them.
 * They are for people, many of whom do not know the host: processes get the numbers that the sandbox knows, and places
 * on the host are left out. No decision depends on the text.
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

/** A number by which CRIU may mean a process or thread: not part of a name, and in a path only below /proc. */
const maybePids = /(?<=\/proc\/|\btask\/)\d+|(?<![\w./:@-])\d+(?![\w@-])/g;

/**
 * Replaces the IDs of the sandbox's processes by those that it knows. Processes that have ended, as those of a fork
 * bomb do all the time, are recognized by the IDs that the host has assigned since.
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

/** The number of a process or thread in its own namespace. Source: proc_pid_status(5). */
function pidInside(pid: number, processes: readonly number[]): string | undefined {
  const status = readIfThere(`/proc/${pid}/status`) ?? '';
  const of = /^Tgid:\t(\d+)$/m.exec(status)?.[1];
  if (of === undefined || !processes.includes(Number(of))) return undefined;
  return /^NSpid:.*\t(\d+)$/m.exec(status)?.[1];
}
