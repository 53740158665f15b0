import { readFileSync, writeFileSync } from 'node:fs';
import { ifThere } from '../../base/if-there.ts';

/** Shares of its time above which a processor counts as full, and up to which it has room. */
const fullShare = 0.9;
const roomShare = 0.5;
/** Processors that a sandbox must keep busy before it is moved: a smaller load would not be felt. */
const movedLeast = 0.25;

/**
 * Which processors run the groups of sandboxes. Programs do not see a limit of time (`cpu.max`): they count the
 * processors that they may run on (sched_getaffinity(2)), and size their pools by that. So a group that may use fewer
 * processors than the machine has gets that many, those with the fewest other groups. Without cpuset control groups,
 * nothing is pinned.
 */
export type Pins = {
  /** Gives a group this many processors; all, if there are no more. */
  choose(path: string, count: number): void;
  /** Counts a group that an earlier process of the platform has pinned. */
  adopt(path: string): void;
  forget(path: string): void;
  /**
   * Moves one group away from full processors to those with room. `busy`: how many processors each group kept busy
   * lately; `shares`: how busy each processor of the machine was.
   */
  spread(busy: ReadonlyMap<string, number>, shares: ReadonlyMap<number, number>): void;
};

/** `fileOf`: the file that sets the processors of a group (`cpuset.cpus`). */
export function createPins(
  fileOf: (path: string) => string,
  processors: readonly number[] = allowedProcessors(),
): Pins {
  const pinned = new Map<string, readonly number[]>();
  const write = (path: string, chosen: readonly number[]) => {
    try {
      // The file is not created if it is missing.
      writeFileSync(fileOf(path), chosen.join(','), { flag: 'r+' });
      return true;
    } catch {
      return false; // no cpuset for this group: its limit of time still holds
    }
  };
  const pin = (path: string, chosen: readonly number[]) => {
    if (write(path, chosen)) pinned.set(path, chosen);
  };
  const leastOf = (count: number, weightOf: (processor: number) => number) =>
    processors.toSorted((a, b) => weightOf(a) - weightOf(b)).slice(0, count);
  return {
    choose(path, count) {
      const had = pinned.delete(path);
      if (count < processors.length) {
        const groups = new Map<number, number>();
        for (const processor of [...pinned.values()].flat()) groups.set(processor, (groups.get(processor) ?? 0) + 1);
        pin(
          path,
          leastOf(count, processor => groups.get(processor) ?? 0),
        );
      } else if (had) write(path, processors);
    },
    adopt(path) {
      if (pinned.has(path)) return;
      const present = listOf(ifThere(() => readFileSync(fileOf(path), 'latin1'), ''));
      if (present.length > 0 && present.length < processors.length) pinned.set(path, present);
    },
    forget: path => void pinned.delete(path),
    spread(busy, shares) {
      const shareOf = (processor: number) => shares.get(processor) ?? 0;
      for (const [path, present] of pinned) {
        if ((busy.get(path) ?? 0) < movedLeast || !present.some(processor => shareOf(processor) > fullShare)) continue;
        // It is not known how busy others keep the processors that the group has: they are kept unless full.
        const better = leastOf(present.length, shareOf);
        if (better.some(processor => shareOf(processor) > roomShare && !present.includes(processor))) continue;
        if (better.every(processor => present.includes(processor))) continue;
        return pin(path, better);
      }
    },
  };
}

/** The processors that this process may run on. Source: proc_pid_status(5), a list of ranges. */
export function allowedProcessors(status = readFileSync('/proc/self/status', 'latin1')): number[] {
  return listOf(/^Cpus_allowed_list:\s*(.*)$/m.exec(status)?.[1] ?? '0');
}

function listOf(text: string): number[] {
  const ranges = text.trim().split(',').filter(Boolean);
  return ranges.flatMap(range => {
    const [first = 0, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
}
