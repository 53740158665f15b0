import { readFileSync, readdirSync } from 'node:fs';
import { platformOf, pssMiBOf, sumOf } from '../../../bench/measure/processes.ts';

/** What a platform holds at one moment. */
export type Holdings = {
  /** Memory of its own processes, not of sandboxes: proportional set size, MiB. */
  memoryMiB: number;
  /** The same processes' open descriptors. */
  descriptors: number;
  /** Memory of the kernel, for everything on the machine, that it can't give back, MiB. */
  kernelMiB: number;
  /** Size of the data directory, MiB. */
  diskMiB: number;
};

export async function holdingsNow(pid: number, dataDir: string): Promise<Holdings> {
  const own = platformOf(pid);
  const { stdout } = await Bun.$`du -sxm ${dataDir}`.quiet().nothrow();
  const meminfo = readFileSync('/proc/meminfo', 'utf8');
  return {
    memoryMiB: sumOf(own, pssMiBOf),
    descriptors: sumOf(own, descriptorsOf),
    kernelMiB: Number(/^SUnreclaim: +(\d+) kB$/m.exec(meminfo)?.[1] ?? Number.NaN) / 1024,
    // It fails if files disappear while it counts; its sum is right except for these.
    diskMiB: Number.parseInt(stdout.toString()),
  };
}

const descriptorsOf = (pid: number) => readdirSync(`/proc/${pid}/fd`).length;
