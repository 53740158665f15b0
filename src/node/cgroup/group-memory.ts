import { keyed } from './keyed.ts';

/** What a group's memory is made of, in bytes. */
export type GroupMemory = {
  /** All of it, including files that the kernel keeps in memory for the group. */
  usedBytes: number;
  anonBytes: number;
  /** Includes what is shared. */
  fileBytes: number;
  /** tmpfs and shared memory: files that exist only in memory. */
  sharedBytes: number;
  mappedBytes: number;
  dirtyBytes: number;
  writebackBytes: number;
  unevictableBytes: number;
  anon: Ages;
  file: Ages;
  /** The kernel's own objects; 0 under version 1, which does not tell them apart. */
  slabBytes: { reclaimable: number; unreclaimable: number };
};

/** Bytes used lately, and bytes that were not. */
type Ages = { active: number; inactive: number };

/** Names of version 2, and those of version 1 for a group including all below it. Source: cgroup-v2.rst, memory.rst. */
const names = {
  v2: {
    prefix: '',
    anon: 'anon',
    file: 'file',
    mapped: 'file_mapped',
    dirty: 'file_dirty',
    writeback: 'file_writeback',
  },
  v1: { prefix: 'total_', anon: 'rss', file: 'cache', mapped: 'mapped_file', dirty: 'dirty', writeback: 'writeback' },
} as const;

/** Reads `memory.stat` of either version, and the file with the group's total use. */
export function groupMemory(stat: string, used: string): GroupMemory {
  const own = stat.includes('\ntotal_cache ') ? names.v1 : names.v2;
  const value = (name: string) => keyed(stat, `${own.prefix}${name}`);
  return {
    usedBytes: Number(used),
    anonBytes: value(own.anon),
    fileBytes: value(own.file),
    sharedBytes: value('shmem'),
    mappedBytes: value(own.mapped),
    dirtyBytes: value(own.dirty),
    writebackBytes: value(own.writeback),
    unevictableBytes: value('unevictable'),
    anon: { active: value('active_anon'), inactive: value('inactive_anon') },
    file: { active: value('active_file'), inactive: value('inactive_file') },
    slabBytes: { reclaimable: value('slab_reclaimable'), unreclaimable: value('slab_unreclaimable') },
  };
}
