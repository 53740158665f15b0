import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { filterDevices } from '../cgroup/device-filter.ts';
import { limited, missing, ok, type Probe, type ProbeResult } from './probe.ts';

const root = '/sys/fs/cgroup';

/** A limit for trying out that every group may have: the file and a value, by controller. */
const limitsV2 = { memory: ['memory.max', '64M'], cpu: ['cpu.max', '50000 100000'], pids: ['pids.max', '10'] } as const;
const limitsV1 = {
  memory: ['memory.limit_in_bytes', '67108864'],
  cpu: ['cpu.cfs_quota_us', '50000'],
  pids: ['pids.max', '10'],
} as const;

/** Whether control groups bound what a sandbox takes. */
export const cgroupProbes: Probe[] = [
  {
    name: 'cgroups',
    needed: true,
    remedy: 'Memory, CPU and process limits need the cgroup controllers memory, cpu and pids, writable for root.',
    look: lookAtCgroups,
  },
  { name: 'cgroup kill and freeze', needed: false, look: lookAtCoreFiles },
  {
    name: 'filter of devices',
    needed: false,
    remedy:
      'The kernel needs CONFIG_CGROUP_BPF, and a container the right to bpf(2). Without it a sandbox has the devices ' +
      'of its /dev, and makes none, as with it.',
    look: lookAtDevices,
  },
];

function lookAtCgroups(): ProbeResult {
  if (existsSync(join(root, 'cgroup.controllers'))) {
    tryLimitsV2();
    return ok('v2; memory, cpu and process limits can be set');
  }
  tryLimitsV1();
  const hybrid = existsSync(join(root, 'unified/cgroup.controllers'));
  return ok(`v1${hybrid ? ' beside v2 (hybrid)' : ''}; memory, cpu and process limits can be set`);
}

function tryLimitsV2(): void {
  const offered = readFileSync(join(root, 'cgroup.controllers'), 'utf8').trim().split(' ');
  const lacking = Object.keys(limitsV2).filter(name => !offered.includes(name));
  if (lacking.length > 0) throw new Error(`cgroup v2 without ${lacking.join(', ')}`);
  const enabled = readFileSync(join(root, 'cgroup.subtree_control'), 'utf8').trim().split(' ');
  // Controllers that nobody uses yet are switched on when sandboxes start; only those that are on can be tried.
  inThrowawayGroup(root, group => {
    for (const [name, [file, value]] of Object.entries(limitsV2))
      if (enabled.includes(name)) writeFileSync(join(group, file), value);
  });
}

function tryLimitsV1(): void {
  for (const [name, [file, value]] of Object.entries(limitsV1)) {
    if (!existsSync(join(root, name))) throw new Error(`cgroup v1 without ${name}`);
    inThrowawayGroup(join(root, name), group => writeFileSync(join(group, file), value));
  }
}

function lookAtCoreFiles(): ProbeResult {
  const hierarchy = [root, join(root, 'unified')].find(path => existsSync(join(path, 'cgroup.controllers')));
  if (hierarchy === undefined)
    return limited(
      'no cgroup v2: processes are killed and frozen through v1 and signals',
      'Boot with cgroup v2 (systemd.unified_cgroup_hierarchy=1).',
    );
  return inThrowawayGroup(hierarchy, group => {
    const lacking = ['cgroup.kill', 'cgroup.freeze'].filter(file => !existsSync(join(group, file)));
    return lacking.length === 0
      ? ok(`in ${hierarchy}`)
      : missing(`no ${lacking.join(', ')} in ${hierarchy}`, 'A kernel of 5.14 or newer has them.');
  });
}

function lookAtDevices(): ProbeResult {
  if (!existsSync(join(root, 'cgroup.controllers'))) return ok('by the controller of version 1');
  inThrowawayGroup(root, filterDevices);
  return ok('by a program of the group above all sandboxes');
}

function inThrowawayGroup<T>(hierarchy: string, look: (group: string) => T): T {
  const group = join(hierarchy, `atoll-doctor-${process.pid}`);
  mkdirSync(group);
  try {
    return look(group);
  } finally {
    rmdirSync(group);
  }
}
