/** How many processors a sandbox's programs kept busy, as decaying means over 1, 5 and 15 minutes. */
export type Load = readonly [number, number, number];

const memorySeconds = [60, 300, 900] as const;
/** Long enough for any load of a machine; the kernel's own line is shorter. */
const lineLength = 63;

/** The load after `seconds` in which `busy` processors were busy on average. */
export function laterLoad(load: Load, busy: number, seconds: number): Load {
  const [one, five, fifteen] = memorySeconds.map((memory, index) => {
    const kept = Math.exp(-seconds / memory);
    return (load[index] as number) * kept + busy * (1 - kept);
  }) as [number, number, number];
  return [one, five, fifteen];
}

/** /proc/loadavg (proc_loadavg(5)), always of the same length. `tasks`: processes and threads of the sandbox. */
export function loadavg(load: Load, tasks: number): string {
  const means = load.map(value => value.toFixed(2)).join(' ');
  return `${`${means} 1/${tasks} ${tasks}`.padEnd(lineLength)}\n`;
}
