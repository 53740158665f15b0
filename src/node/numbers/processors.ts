import { readFileSync } from 'node:fs';

/** The entries of the host's processors in /proc/cpuinfo, from the first on; an empty list if it has none. */
export function hostProcessors(text = readFileSync('/proc/cpuinfo', 'latin1')): string[] {
  return text.split('\n\n').filter(block => block.startsWith('processor'));
}

/** Fields of one processor that count or number others (arch/x86/kernel/cpu/proc.c): a sandbox has one package. */
const renumbered: Record<string, (index: number, count: number) => number> = {
  processor: index => index,
  'physical id': () => 0,
  siblings: (_index, count) => count,
  'core id': index => index,
  'cpu cores': (_index, count) => count,
  apicid: index => index,
  'initial apicid': index => index,
};

/** /proc/cpuinfo of a sandbox with `count` processors, each like one of the host's. */
export function cpuinfo(processors: readonly string[], count: number): string {
  return processors
    .slice(0, count)
    .map(
      (block, index) =>
        `${block
          .split('\n')
          .map(line => renumber(line, index, count))
          .join('\n')}\n\n`,
    )
    .join('');
}

function renumber(line: string, index: number, count: number): string {
  const colon = line.indexOf(':');
  const value = renumbered[line.slice(0, Math.max(colon, 0)).trimEnd()];
  return value ? `${line.slice(0, colon + 1)} ${value(index, count)}` : line;
}

/** /sys/devices/system/cpu/online of a sandbox with `count` processors: a list of ranges (cputopology.rst). */
export function online(count: number): string {
  return count === 1 ? '0\n' : `0-${count - 1}\n`;
}
