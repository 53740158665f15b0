import { readFileSync, statfsSync } from 'node:fs';
import { machine } from 'node:os';
import type { NodeInfo } from '../../protocol/node.ts';
import type { DiskUsage, NodeUsage } from '../../protocol/node-usage.ts';

type MachineFacts = NonNullable<NodeInfo['machine']>;
type MachineUsage = Omit<NodeUsage, 'pool' | 'traffic' | 'space'>;

/** The processor's share is that of a span at least this long. */
const cpuWindowMs = 5_000;
const bytesPerKiB = 1024;

/** The machine's properties and its current use, all its processes included. */
export type Machine = { facts: MachineFacts; usage(): MachineUsage; stop(): void };

/** `dataDir`: its file system is listed even if it is no disk of the machine. */
export function observeMachine(dataDir: string): Machine {
  let earlier = readCpu();
  let latest = earlier;
  const timer = setInterval(() => ([earlier, latest] = [latest, readCpu()]), cpuWindowMs);
  return {
    facts: machineFacts(readFileSync('/proc/cpuinfo', 'latin1'), machine()),
    usage() {
      // Until the first span is over, uses the part of it that has passed.
      const [from, to] = latest === earlier ? [earlier, readCpu()] : [earlier, latest];
      const memory = keyedKiB(readFileSync('/proc/meminfo', 'latin1'));
      return {
        cpuPercent: busyPercent(from, to),
        memoryUsedBytes: memory('MemTotal') - memory('MemAvailable'),
        hugePages: {
          total: memory('HugePages_Total') / bytesPerKiB,
          used: (memory('HugePages_Total') - memory('HugePages_Free')) / bytesPerKiB,
          reserved: memory('HugePages_Rsvd') / bytesPerKiB,
          pageSizeBytes: memory('Hugepagesize'),
        },
        disks: diskUsage(readFileSync('/proc/self/mountinfo', 'utf8'), dataDir),
      };
    },
    stop: () => clearInterval(timer),
  };
}

/** Facts about the first processor. Arm identifies its parts by numbers of its own (proc(5), arch/arm64). */
export function machineFacts(cpuinfo: string, architecture: string): MachineFacts {
  const value = (...names: string[]) =>
    names
      .map(name => new RegExp(`^${name}\\s*:\\s*(.*)$`, 'm').exec(cpuinfo)?.[1]?.trim())
      .find(text => text !== undefined) ?? '';
  return {
    cpuFamily: value('cpu family', 'CPU architecture'),
    cpuModel: value('model', 'CPU part'),
    cpuModelName: value('model name', 'CPU implementer'),
    cpuArchitecture: architecture,
  };
}

type CpuTimes = { busy: number; all: number };

/** Clock ticks of all processors since boot. Source: proc(5), /proc/stat; the user's time includes that of guests. */
function readCpu(): CpuTimes {
  const [user = 0, nice = 0, system = 0, idle = 0, waiting = 0, irq = 0, softirq = 0, steal = 0] = (
    readFileSync('/proc/stat', 'latin1').split('\n', 1)[0] ?? ''
  )
    .split(/\s+/)
    .slice(1)
    .map(Number);
  const busy = user + nice + system + irq + softirq + steal;
  return { busy, all: busy + idle + waiting };
}

function busyPercent(from: CpuTimes, to: CpuTimes): number {
  const all = to.all - from.all;
  return all <= 0 ? 0 : Math.min(Math.max(((to.busy - from.busy) / all) * 100, 0), 100);
}

/** Reads `Name:   123 kB` of /proc/meminfo as bytes. */
function keyedKiB(text: string): (name: string) => number {
  return name => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0) * bytesPerKiB;
}

type Mount = { mountPoint: string; device: string; filesystemType: string; number: string };

/**
 * The file systems on disks of the machine, each once, and that of `dataDir`. Loop devices are left out: they are
 * disks of sandboxes and snaps.
 */
export function diskUsage(mountinfo: string, dataDir: string): DiskUsage[] {
  const mounts = mountinfo.split('\n').flatMap(mountOf);
  const own = mounts
    .filter(({ mountPoint }) => isBelow(dataDir, mountPoint))
    .sort((a, b) => b.mountPoint.length - a.mountPoint.length)[0];
  const onDisks = mounts.filter(
    ({ device }) => device.startsWith('/dev/') && !/^\/dev\/(loop|fuse|ram|zram)/.test(device),
  );
  const seen = new Map<string, Mount>();
  for (const mount of [...(own ? [own] : []), ...onDisks]) if (!seen.has(mount.number)) seen.set(mount.number, mount);
  return [...seen.values()].flatMap(usageOf);
}

/**
 * Source: proc_pid_mountinfo(5): ID, parent, major:minor, root, mount point, options, optional fields, `-`, type,
 * source.
 */
function mountOf(line: string): Mount[] {
  const fields = line.split(' ');
  const dash = fields.indexOf('-', 6);
  const [number, mountPoint, filesystemType, device] = [fields[2], fields[4], fields[dash + 1], fields[dash + 2]];
  if (
    dash < 0 ||
    number === undefined ||
    mountPoint === undefined ||
    filesystemType === undefined ||
    device === undefined
  )
    return [];
  return [{ number, mountPoint: unescape(mountPoint), filesystemType, device: unescape(device) }];
}

const unescape = (text: string) =>
  text.replace(/\\(\d{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
const isBelow = (path: string, mountPoint: string) =>
  mountPoint === '/' || path === mountPoint || path.startsWith(`${mountPoint}/`);

function usageOf({ mountPoint, device, filesystemType }: Mount): DiskUsage[] {
  try {
    const { blocks, bfree, bsize } = statfsSync(mountPoint);
    return blocks === 0
      ? []
      : [{ mountPoint, device, filesystemType, usedBytes: (blocks - bfree) * bsize, totalBytes: blocks * bsize }];
  } catch {
    return []; // a mount that another one hides, or that we may not see
  }
}
