import { existsSync, readFileSync } from 'node:fs';

/** What was written to a loop device since the host started. */
export type LoopWrites = {
  /** Its name, e.g. `loop7`. */
  name: string;
  /** Its number, e.g. `7:112`. */
  device: string;
  bytes: number;
};

/** Unit of the kernel's counts, whatever the device's blocks are. */
const sectorBytes = 512;
// Number, name, four counts of reads, writes and merged ones, and sectors written.
const line = /^ *(\d+) +(\d+) (loop\d+)(?: \d+){6} (\d+) /gm;

/** Every loop device of the host. Source: Documentation/admin-guide/iostats.rst of Linux. */
export function loopWrites(diskstats: string = readFileSync('/proc/diskstats', 'latin1')): LoopWrites[] {
  return [...diskstats.matchAll(line)].map(([, major, minor, name = '', sectors]) => ({
    name,
    device: `${major}:${minor}`,
    bytes: Number(sectors) * sectorBytes,
  }));
}

/** Whether a block device is a loop device that serves nothing. */
export function isFreeLoop(device: string): boolean {
  const folder = `/sys/dev/block/${device}`;
  return device.startsWith('7:') && existsSync(folder) && !existsSync(`${folder}/loop`);
}
