import type { GroupMemory } from '../cgroup/group-memory.ts';

const bytesPerKiB = 1024;
/** As wide as the kernel writes the names: programs cut columns. */
const nameWidth = 16;
const valueWidth = 8;

/** /proc/meminfo (proc_meminfo(5)) of a sandbox that may use `limitBytes`. Always of the same length. */
export function meminfo(limitBytes: number, memory: GroupMemory): string {
  const { usedBytes, fileBytes, sharedBytes, slabBytes } = memory;
  const used = Math.min(usedBytes, limitBytes);
  // What the kernel can give up when programs need memory; it can't give up tmpfs.
  const reclaimable = Math.min(Math.max(fileBytes - sharedBytes, 0) + slabBytes.reclaimable, used);
  const lines: [string, number][] = [
    ['MemTotal', limitBytes],
    ['MemFree', limitBytes - used],
    ['MemAvailable', limitBytes - used + reclaimable],
    ['Buffers', 0],
    ['Cached', fileBytes],
    ['SwapCached', 0],
    ['Active', memory.anon.active + memory.file.active],
    ['Inactive', memory.anon.inactive + memory.file.inactive],
    ['Active(anon)', memory.anon.active],
    ['Inactive(anon)', memory.anon.inactive],
    ['Active(file)', memory.file.active],
    ['Inactive(file)', memory.file.inactive],
    ['Unevictable', memory.unevictableBytes],
    ['Mlocked', 0],
    ['SwapTotal', 0],
    ['SwapFree', 0],
    ['Dirty', memory.dirtyBytes],
    ['Writeback', memory.writebackBytes],
    ['AnonPages', memory.anonBytes],
    ['Mapped', memory.mappedBytes],
    ['Shmem', sharedBytes],
    ['KReclaimable', slabBytes.reclaimable],
    ['Slab', slabBytes.reclaimable + slabBytes.unreclaimable],
    ['SReclaimable', slabBytes.reclaimable],
    ['SUnreclaim', slabBytes.unreclaimable],
    ['CommitLimit', limitBytes],
    ['Committed_AS', memory.anonBytes + sharedBytes],
  ];
  return lines.map(([name, bytes]) => line(name, Math.floor(bytes / bytesPerKiB))).join('');
}

function line(name: string, kib: number): string {
  return `${`${name}:`.padEnd(nameWidth)}${String(kib).padStart(valueWidth)} kB\n`;
}
